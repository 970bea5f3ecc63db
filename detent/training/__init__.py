"""Training: what changes parameters."""

from detent.training.anchor import Anchor as Anchor
from detent.training.anchor import Anchoring as Anchoring
from detent.training.codes import Codes as Codes
from detent.training.codes import find_codes as find_codes
from detent.training.observation import observe as observe
from detent.training.phases import Anchored as Anchored
from detent.training.phases import Tracking as Tracking
from detent.training.settings import Settings as Settings
