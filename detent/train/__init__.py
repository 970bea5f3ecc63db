"""Training: what changes parameters."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.train.api import train as train
    from detent.train.config import ARMS as ARMS
    from detent.train.config import Plan as Plan
    from detent.train.induce import Run as Run
    from detent.train.phases import Anchored as Anchored
    from detent.train.phases import Tracking as Tracking
    from detent.train.pretraining import Anchor as Anchor
    from detent.train.pretraining import Anchoring as Anchoring
    from detent.train.settings import Settings as Settings
    from detent.train.state_codes import Codes as Codes
    from detent.train.state_codes import find_codes as find_codes
    from detent.train.state_codes import observe as observe

__all__ = lazy(__name__, call=True)
