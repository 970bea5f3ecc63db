"""Training: configurations, recipes, the trainer and its phases, and the folder of a run."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.train.api import train as train
    from exactstate.train.codes import StateCodes as StateCodes
    from exactstate.train.codes import codes_of_counts as codes_of_counts
    from exactstate.train.codes import codes_of_machine as codes_of_machine
    from exactstate.train.codes import count_transitions as count_transitions
    from exactstate.train.config import EndToEndConfig as EndToEndConfig
    from exactstate.train.config import GradientConfig as GradientConfig
    from exactstate.train.config import TrainConfig as TrainConfig
    from exactstate.train.end_to_end import EndToEndPhase as EndToEndPhase
    from exactstate.train.phases import Phase as Phase
    from exactstate.train.realize import Realize as Realize
    from exactstate.train.recipes import RECIPES as RECIPES
    from exactstate.train.recipes import configure as configure
    from exactstate.train.run import Run as Run
    from exactstate.train.run import load_run as load_run
    from exactstate.train.run_dir import RunDir as RunDir
    from exactstate.train.trainer import Interrupted as Interrupted
    from exactstate.train.trainer import Trainer as Trainer

__all__ = lazy(__name__, {
    "api": ["train"],
    "codes": ["StateCodes", "codes_of_counts", "codes_of_machine", "count_transitions"],
    "config": ["EndToEndConfig", "GradientConfig", "TrainConfig"],
    "end_to_end": ["EndToEndPhase"],
    "phases": ["Phase"],
    "realize": ["Realize"],
    "recipes": ["RECIPES", "configure"],
    "run": ["Run", "load_run"],
    "run_dir": ["RunDir"],
    "trainer": ["Interrupted", "Trainer"],
}, call=True)  # fmt: skip
