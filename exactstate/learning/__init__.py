"""Machines from data, without a network: logs, prefix trees, state merging, conformance. NumPy, no torch."""

from exactstate.learning.active import learn_actively
from exactstate.learning.calls import Call, CallTrace, read_calls
from exactstate.learning.events import Events
from exactstate.learning.learn import LearnedMachine, learn
from exactstate.learning.logs import Trace, read_log
from exactstate.learning.monitor import Monitor, learn_monitor
from exactstate.learning.passive_learning import InferredMachine, PassiveLearningConfig, infer_machine
from exactstate.learning.prefix_tree import PrefixTree
from exactstate.learning.state_merging import MergedStates, merge_states
from exactstate.learning.suites import ConformanceSuite, conformance_suite
from exactstate.learning.trace_tree import TraceTree

__all__ = [
    "Call", "CallTrace", "ConformanceSuite", "Events", "InferredMachine", "LearnedMachine", "MergedStates", "Monitor",
    "PassiveLearningConfig", "PrefixTree", "Trace", "TraceTree", "conformance_suite", "infer_machine", "learn",
    "learn_actively", "learn_monitor", "merge_states", "read_calls", "read_log",
]  # fmt: skip
