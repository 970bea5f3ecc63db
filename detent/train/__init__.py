"""Training: configurations, recipes, the trainer and its phases, and the folder of a run."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.train.api import train as train
    from detent.train.config import CELLS as CELLS
    from detent.train.config import EndToEndConfig as EndToEndConfig
    from detent.train.config import GradientConfig as GradientConfig
    from detent.train.config import PretrainConfig as PretrainConfig
    from detent.train.config import TrainConfig as TrainConfig
    from detent.train.phases import EndToEndPhase as EndToEndPhase
    from detent.train.phases import Phase as Phase
    from detent.train.phases import PretrainPhase as PretrainPhase
    from detent.train.pretraining import TransitionPretrainer as TransitionPretrainer
    from detent.train.recipes import RECIPES as RECIPES
    from detent.train.recipes import configure as configure
    from detent.train.run import Run as Run
    from detent.train.run import load_run as load_run
    from detent.train.run_dir import RunDir as RunDir
    from detent.train.state_codes import StateCodes as StateCodes
    from detent.train.state_codes import count_transitions as count_transitions
    from detent.train.state_codes import find_codes as find_codes
    from detent.train.trainer import Interrupted as Interrupted
    from detent.train.trainer import Trainer as Trainer

__all__ = lazy(__name__, call=True)
