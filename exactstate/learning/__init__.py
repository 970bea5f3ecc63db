"""Machines from data, without a network: logs, prefix trees, state merging, conformance. NumPy, no torch."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.learning.active import learn_actively as learn_actively
    from exactstate.learning.conformance import ConformanceSuite as ConformanceSuite
    from exactstate.learning.conformance import conformance_suite as conformance_suite
    from exactstate.learning.learn import LearnedMachine as LearnedMachine
    from exactstate.learning.learn import learn as learn
    from exactstate.learning.logs import Trace as Trace
    from exactstate.learning.logs import read_log as read_log
    from exactstate.learning.passive_learning import InferredMachine as InferredMachine
    from exactstate.learning.passive_learning import PassiveLearningConfig as PassiveLearningConfig
    from exactstate.learning.passive_learning import infer_machine as infer_machine
    from exactstate.learning.prefix_tree import PrefixTree as PrefixTree
    from exactstate.learning.state_merging import MergedStates as MergedStates
    from exactstate.learning.state_merging import merge_states as merge_states
    from exactstate.learning.trace_tree import TraceTree as TraceTree

__all__ = lazy(__name__)
