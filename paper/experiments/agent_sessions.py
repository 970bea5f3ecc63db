"""Sessions of agents from data of other people: tau2-bench's telecom tasks and AgentDojo, both under the MIT license.

They are read from the packages `inspect-evals` and `agentdojo` (extra `agents`); nothing of them is kept here.

- `tau2`: a session is one or two tasks. A task begins with what its ticket says, the `initialization_actions` as calls
  `ticket.NAME`, and goes on with the reference actions of agent and user. In some sessions actions are left out, made
  twice, or taken from another task. How such a session ended is what the tools of `inspect-evals` say when the calls
  are executed: failed, if an assertion of the task does not hold at its end. Reference actions end well.
- `agentdojo`: a session is two to four user tasks, by their ground truth; in an attack the calls of an injection task
  are spliced in.

Between calls there are `idle` ones, which read and change nothing. Tasks and injections of the test occur in no
training session.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from exactstate.errors import BackendUnavailable
from exactstate.learning.calls import Call, CallTrace, as_call
from exactstate.learning.events import Events

IDLE = 0.3
"""How often an idle call comes before a call."""
WRONG = 0.4
"""The share of sessions that are changed: tasks of tau2 that go wrong, and attacks."""
EVENTS = {
    "tau2": Events(arguments={
        "grant_app_permission": {"permission": "value"}, "ticket.remove_app_permission": {"permission": "value"},
    }),
    "agentdojo": Events(),
}  # fmt: skip
"""What of a call is read: its name, and which permission of an app is meant."""


@dataclass
class Source:
    """What sessions are made of."""

    idle: Sequence[str]
    session: Callable[[np.random.Generator, bool, bool], tuple[list[Call], str]]
    """Its calls and its label, from randomness, whether it is held out, and whether it is changed."""


def sessions(
    source: Source, draw: np.random.Generator, count: int, *, held_out: bool = False, far: int = 0
) -> list[CallTrace]:  # fmt: skip
    """So many sessions; with `far`, so many idle calls besides at one place within each."""
    traces = []
    for line in range(1, count + 1):
        calls, label = source.session(draw, held_out, bool(draw.random() < WRONG))
        place = int(draw.integers(1, len(calls))) if far else -1
        mixed: list[Call] = []
        for at, call in enumerate(calls):
            idle = far if at == place else int(at > 0 and draw.random() < IDLE)
            mixed += [Call(source.idle[i]) for i in draw.integers(0, len(source.idle), idle)]
            mixed.append(call)
        traces.append(CallTrace(mixed, label, line))
    return traces


def source_of(name: str) -> Source:
    """The source of this name; a sentence if its package is not installed."""
    try:
        return {"tau2": _tau2, "agentdojo": _agentdojo}[name]()
    except ImportError as error:
        package = {"tau2": "inspect-evals", "agentdojo": "agentdojo"}[name]
        raise BackendUnavailable(f"{name} is read from {package}, and {error}; pip install '.[agents]'.") from None


@dataclass
class Telecom:
    """The tools of the telecom domain, to execute a task with."""

    agent: Any
    user: Any
    clean: tuple[Any, Any]
    outcomes: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Telecom:
        from inspect_ai.util import Store
        from inspect_evals.tau2.telecom.TelecomAgentTools import TelecomAgentTools
        from inspect_evals.tau2.telecom.TelecomUserTools import TelecomUserTools

        store = Store()
        agent, user = TelecomAgentTools(store=store), TelecomUserTools(store=store)
        agent.initialize()
        user.initialize()
        return cls(agent, user, (deepcopy(agent.db), deepcopy(user.db)))

    def succeeds(self, task: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
        """Whether all assertions of a task hold after these actions."""
        key = json.dumps([task["id"], actions])
        if key not in self.outcomes:
            self.outcomes[key] = self._run(task, actions)
        return self.outcomes[key]

    def _run(self, task: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
        from inspect_ai.tool import ToolError
        from inspect_evals.tau2.telecom.environment import Environment

        self.agent.db, self.user.db = deepcopy(self.clean)
        environment = Environment(self.user, self.agent)
        for action in task["initial_state"]["initialization_actions"]:
            self._method(action["env_type"], action["func_name"])(**action["arguments"])
            environment.sync_tools()
        for action in actions:
            with suppress(ToolError):  # what the agent is told; nothing has changed
                self._method(action["requestor"], action["name"])(**action["arguments"])
            environment.sync_tools()
        return all(
            self._method(one["env_type"], one["func_name"])(**one["arguments"]) == one["assert_value"]
            for one in task["evaluation_criteria"]["env_assertions"] or []
        )

    def _method(self, who: str, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.user if who == "user" else self.agent, name)
        return method


@cache
def _tau2() -> Source:
    from inspect_evals.tau2.utils import TAU2_DATA_DIR

    telecom = Telecom.load()
    tasks = json.loads(gzip.decompress((TAU2_DATA_DIR / "domains/telecom/tasks.json.gz").read_bytes()))
    tasks = [task for task in tasks if task["evaluation_criteria"]["actions"]]
    parts = _split(sorted({_solution(task) for task in tasks}))
    by_part = [[task for task in tasks if _solution(task) in part] for part in parts]

    def session(draw: np.random.Generator, held_out: bool, changed: bool) -> tuple[list[Call], str]:
        pool = by_part[held_out]
        chosen = [pool[i] for i in draw.integers(0, len(pool), draw.integers(1, 3))]
        which = int(draw.integers(0, len(chosen))) if changed else -1
        calls, good = [], True
        for number, task in enumerate(chosen):
            actions = list(task["evaluation_criteria"]["actions"])
            if number == which:
                other = pool[draw.integers(0, len(pool))]["evaluation_criteria"]["actions"]
                actions = _changed(actions, other, draw)
                good = telecom.succeeds(task, actions)
            ticket = task["initial_state"]["initialization_actions"]
            calls += [as_call({**one, "name": f"ticket.{one['func_name']}"}) for one in ticket]
            calls += [as_call(one) for one in actions]
        return calls, "ok" if good else "failed"

    idle = [name for name in dir(type(telecom.user)) if name.startswith("check_")]
    return Source(idle, session)


def _solution(task: dict[str, Any]) -> str:
    """What must not be in both parts: the ticket and the actions, whatever the persona."""
    return json.dumps([task["initial_state"]["initialization_actions"], task["evaluation_criteria"]["actions"]])


def _changed(actions: list[Any], other: list[Any], draw: np.random.Generator) -> list[Any]:
    """One action left out, made once more at once or later, or one of another task put in."""
    at, place, kind = (int(draw.integers(0, n)) for n in (len(actions), len(actions) + 1, 3))
    if kind == 0:
        return actions[:at] + actions[at + 1 :]
    extra = actions[at] if kind == 1 else other[int(draw.integers(0, len(other)))]
    return [*actions[:place], extra, *actions[place:]]


@cache
def _agentdojo() -> Source:
    from agentdojo.task_suite.load_suites import get_suites

    tasks: list[list[Call]] = []
    injections: list[list[Call]] = []
    tools: set[str] = set()
    for suite in get_suites("v1").values():
        environment = suite.load_and_inject_default_environment({})
        tools |= {tool.name for tool in suite.tools}
        for found, group in ((tasks, suite.user_tasks), (injections, suite.injection_tasks)):
            for task in group.values():
                start = deepcopy(environment)
                if hasattr(task, "init_environment"):
                    start = task.init_environment(start)
                calls = [as_call({"name": c.function, "arguments": dict(c.args)}) for c in task.ground_truth(start)]
                found += [calls] if calls else []
    made = {call.name for calls in (*tasks, *injections) for call in calls}
    idle = sorted(name for name in tools - made if name.startswith(("get_", "search_", "list_", "read_", "check_")))
    good, bad = _split(tasks), _split(injections)

    def session(draw: np.random.Generator, held_out: bool, changed: bool) -> tuple[list[Call], str]:
        pool = good[held_out]
        calls = [call for i in draw.integers(0, len(pool), draw.integers(2, 5)) for call in pool[i]]
        if not changed:
            return calls, "ok"
        attack = bad[held_out][int(draw.integers(0, len(bad[held_out])))]
        place = int(draw.integers(1, len(calls) + 1))
        return [*calls[:place], *attack, *calls[place:]], "attack"

    return Source(idle, session)


def _split(things: list[Any]) -> tuple[list[Any], list[Any]]:
    """Two thirds to learn from, one third held out; the same for every seed."""
    order = np.random.default_rng(36).permutation(len(things))
    third = len(things) // 3
    return [things[i] for i in order[third:]], [things[i] for i in order[:third]]


def words_of(traces: Sequence[CallTrace], events: Events) -> Iterator[list[str]]:
    """The symbols of each trace."""
    return (events.symbols(trace.calls) for trace in traces)
