"""Machines from data, without a network: prefix trees, state merging and passive learning. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.learning.passive_learning import InferredMachine as InferredMachine
    from detent.learning.passive_learning import PassiveLearningConfig as PassiveLearningConfig
    from detent.learning.passive_learning import infer_machine as infer_machine
    from detent.learning.prefix_tree import PrefixTree as PrefixTree
    from detent.learning.state_merging import MergedStates as MergedStates
    from detent.learning.state_merging import merge_states as merge_states

__all__ = lazy(__name__)
