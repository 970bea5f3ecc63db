"""The backbone: embed, layers, read out."""

from detent.models.backbone import Backbone as Backbone
from detent.models.backbone import State as State
