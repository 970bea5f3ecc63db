"""Machines from data, without a network: logs, prefix trees, state merging, conformance. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.learning.active import learn_actively as learn_actively
    from detent.learning.conformance import ConformanceSuite as ConformanceSuite
    from detent.learning.conformance import conformance_suite as conformance_suite
    from detent.learning.learn import LearnedMachine as LearnedMachine
    from detent.learning.learn import learn as learn
    from detent.learning.logs import Trace as Trace
    from detent.learning.logs import read_log as read_log
    from detent.learning.passive_learning import InferredMachine as InferredMachine
    from detent.learning.passive_learning import PassiveLearningConfig as PassiveLearningConfig
    from detent.learning.passive_learning import infer_machine as infer_machine
    from detent.learning.prefix_tree import PrefixTree as PrefixTree
    from detent.learning.state_merging import MergedStates as MergedStates
    from detent.learning.state_merging import merge_states as merge_states
    from detent.learning.trace_tree import TraceTree as TraceTree

__all__ = lazy(__name__)
