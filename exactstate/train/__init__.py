"""Training: configurations, recipes, the trainer and its phases, and the folder of a run."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.train.api import train as train
    from exactstate.train.config import EndToEndConfig as EndToEndConfig
    from exactstate.train.config import GradientConfig as GradientConfig
    from exactstate.train.config import PretrainConfig as PretrainConfig
    from exactstate.train.config import TrainConfig as TrainConfig
    from exactstate.train.phases import EndToEndPhase as EndToEndPhase
    from exactstate.train.phases import Phase as Phase
    from exactstate.train.phases import PretrainPhase as PretrainPhase
    from exactstate.train.pretraining import TransitionPretrainer as TransitionPretrainer
    from exactstate.train.recipes import RECIPES as RECIPES
    from exactstate.train.recipes import configure as configure
    from exactstate.train.run import Run as Run
    from exactstate.train.run import load_run as load_run
    from exactstate.train.run_dir import RunDir as RunDir
    from exactstate.train.state_codes import StateCodes as StateCodes
    from exactstate.train.state_codes import count_transitions as count_transitions
    from exactstate.train.state_codes import find_codes as find_codes
    from exactstate.train.trainer import Interrupted as Interrupted
    from exactstate.train.trainer import Trainer as Trainer

__all__ = lazy(__name__, {
    "api": ["train"],
    "config": ["EndToEndConfig", "GradientConfig", "PretrainConfig", "TrainConfig"],
    "phases": ["EndToEndPhase", "Phase", "PretrainPhase"],
    "pretraining": ["TransitionPretrainer"],
    "recipes": ["RECIPES", "configure"],
    "run": ["Run", "load_run"],
    "run_dir": ["RunDir"],
    "state_codes": ["StateCodes", "count_transitions", "find_codes"],
    "trainer": ["Interrupted", "Trainer"],
}, call=True)  # fmt: skip
