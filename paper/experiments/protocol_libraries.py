"""The campaign `protocol_libraries`: machines of running protocol libraries, learned by asking and from noisy logs.

Each is asked in process, a new connection for every word: h11 and wsproto as servers, aiosmtpd with a transport in
memory. Two versions are compared, and the shortest word on which their machines differ is asked of both once more.
h11 is compared with its documented table of states as well. `folder` has a folder for every version:

    pip install --no-deps --target versions/wsproto-1.0.0 wsproto==1.0.0 h11==0.12.0
    python -m paper run protocol_libraries --set folder=versions
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from exactstate.automata import Mealy, distinguishing_word, minimize
from exactstate.errors import InvalidConfig
from exactstate.learning import learn, learn_actively
from exactstate.records import Row
from paper.experiments.runner import Campaign, Job, Options

Query = Callable[[Sequence[str]], list[str]]
NOISE = 0.05
LOGS = 2000
"""Words of a log, of 12 inputs each."""


def h11_server(h11: ModuleType) -> tuple[Query, tuple[str, ...]]:
    """An HTTP/1.1 server: what the peer sends, what we send; the states of client and server."""
    peer = {"get": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "eof": b""}
    ours = {
        "response": h11.Response(status_code=200, headers=[("transfer-encoding", "chunked")]),
        "data": h11.Data(data=b"x"), "end": h11.EndOfMessage(), "close": h11.ConnectionClosed(),
    }  # fmt: skip

    def query(word: Sequence[str]) -> list[str]:
        connection, answers = h11.Connection(h11.SERVER), []
        for symbol in word:
            try:
                if symbol == "get" and connection.their_state is not h11.IDLE:  # no pipelining: it has to wait
                    answers.append("held")
                    continue
                if symbol in peer:
                    connection.receive_data(peer[symbol])
                    while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
                        if connection.their_state in (h11.CLOSED, h11.ERROR):
                            break
                elif symbol == "next":
                    connection.start_next_cycle()
                else:
                    connection.send(ours[symbol])
                said = ""
            except Exception as error:  # what a library raises is an answer
                said = f"!{type(error).__name__}"
            answers.append(f"{connection.their_state}/{connection.our_state}{said}")
        return answers

    return query, (*peer, *ours, "next")


def wsproto_server(wsproto: ModuleType) -> tuple[Query, tuple[str, ...]]:
    """A WebSocket server after the handshake: frames of the peer, frames of ours; events, and the state."""
    connection, events = (importlib.import_module(f"wsproto.{name}") for name in ("connection", "events"))
    sides = connection.ConnectionType

    def event(name: str) -> Any:
        if name in ("text", "half"):
            return events.TextMessage(data="x", message_finished=name == "text")
        return events.Ping(payload=b"") if name == "ping" else events.CloseConnection(code=1000)

    def query(word: Sequence[str]) -> list[str]:
        server, answers = connection.Connection(sides.SERVER), []
        for symbol in word:
            who, _, name = symbol.partition(":")
            try:
                if who == "send":
                    said = "sent" if server.send(event(name)) else "nothing"
                else:
                    server.receive_data(
                        None if name == "eof" else connection.Connection(sides.CLIENT).send(event(name))
                    )
                    said = "+".join(type(one).__name__ for one in server.events()) or "nothing"
            except Exception as error:  # what a library raises is an answer
                said = f"!{type(error).__name__}"
            answers.append(f"{said}/{server.state.name}")
        return answers

    received = ("text", "half", "ping", "close", "eof")
    return query, (*(f"recv:{name}" for name in received), *(f"send:{name}" for name in ("text", "ping", "close")))


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default


def smtp_server(aiosmtpd: ModuleType) -> tuple[Query, tuple[str, ...]]:
    """An SMTP server: commands, and the codes of its replies."""
    smtp = importlib.import_module("aiosmtpd.smtp")
    logging.getLogger("mail").setLevel(logging.CRITICAL)
    lines = {
        "HELO": b"HELO a\r\n", "EHLO": b"EHLO a\r\n", "MAIL": b"MAIL FROM:<a@b.c>\r\n", "RCPT": b"RCPT TO:<d@e.f>\r\n",
        "DATA": b"DATA\r\n", "message": b"hello\r\n.\r\n", "RSET": b"RSET\r\n", "QUIT": b"QUIT\r\n",
    }  # fmt: skip
    loop = asyncio.new_event_loop()

    class Handler:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            return "250 OK"

    async def run(word: Sequence[str]) -> list[str]:
        protocol, transport, answers = smtp.SMTP(Handler(), loop=loop, hostname="h"), _Transport(), []
        protocol.connection_made(transport)
        for symbol in (None, *word):
            transport.written = b""
            if symbol is not None and not transport.closed:
                protocol.data_received(lines[symbol])
            for _ in range(12):
                await asyncio.sleep(0)
            replies = [line for line in transport.written.split(b"\r\n") if line and line[3:4] != b"-"]
            closed = transport.closed and not replies
            answers.append("closed" if closed else "+".join(line[:3].decode() for line in replies) or "nothing")
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        return answers[1:]

    return (lambda word: loop.run_until_complete(run(word))), tuple(lines)


PARTS = {"h11": ("_state",), "wsproto": ("connection", "events"), "aiosmtpd": ("smtp",)}
"""The modules of each that are used."""
SYSTEMS = {"h11": h11_server, "wsproto": wsproto_server, "aiosmtpd": smtp_server}


def library(folder: Path, name: str) -> ModuleType:
    """The library of a folder, in the place of one that was imported before."""
    if not (folder / name).is_dir():
        raise InvalidConfig(f"{folder} has no {name}; make it with pip install --no-deps --target {folder} {name}.")
    inside = {path.name.removesuffix(".py") for path in folder.iterdir()}
    for module in [module for module in sys.modules if module.partition(".")[0] in inside]:
        del sys.modules[module]
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in PARTS[name]:
                importlib.import_module(f"{name}.{part}")
            return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def h11_documented(h11: ModuleType, symbols: Sequence[str]) -> Mealy:
    """The machine of the tables that h11 documents: states of client and server, and which events they permit."""
    table = importlib.import_module("h11._state")
    client, server, error = h11.CLIENT, h11.SERVER, h11.ERROR
    events = {
        "get": (client, [h11.Request, h11.EndOfMessage]), "eof": (client, [h11.ConnectionClosed]),
        "response": (server, [h11.Response]), "data": (server, [h11.Data]), "end": (server, [h11.EndOfMessage]),
        "close": (server, [h11.ConnectionClosed]),
    }  # fmt: skip

    def settled(states: dict[Any, Any]) -> dict[Any, Any]:
        while True:
            after = states | table.STATE_TRIGGERED_TRANSITIONS.get((states[client], states[server]), {})
            if after == states:
                return after
            states = after

    def step(pair: tuple[Any, Any], symbol: str) -> tuple[tuple[Any, Any], str]:
        states, said = {client: pair[0], server: pair[1]}, ""
        if symbol == "get" and pair[0] is not h11.IDLE:
            return pair, "held"
        if symbol == "next":
            if pair == (h11.DONE, h11.DONE):
                states = {client: h11.IDLE, server: h11.IDLE}
            else:
                said = "!LocalProtocolError"
        else:
            who, parts = events[symbol]
            for event in parts:
                permitted = table.EVENT_TRIGGERED_TRANSITIONS[who][states[who]]
                if event not in permitted:
                    states[who], said = error, f"!{'Remote' if who is client else 'Local'}ProtocolError"
                    states = settled(states)
                    break
                states[who] = permitted[event]
                if event is h11.Request:  # the server sees it as well
                    seen = table.EVENT_TRIGGERED_TRANSITIONS[server][states[server]].get((event, client))
                    if seen is None:
                        states[client], said = error, "!RemoteProtocolError"
                        break
                    states[server] = seen
                states = settled(states)
        after = states[client], states[server]
        return after, f"{after[0]}/{after[1]}{said}"

    order: list[tuple[Any, Any]] = [(h11.IDLE, h11.IDLE)]
    outputs: dict[str, int] = {}
    tables, readout = [], []
    for pair in order:
        row = []
        for symbol in symbols:
            after, said = step(pair, symbol)
            if after not in order:
                order.append(after)
            row.append((order.index(after), outputs.setdefault(said, len(outputs))))
        tables.append([to for to, _ in row])
        readout.append([output for _, output in row])
    return minimize(Mealy(
        symbols=tuple(symbols), tables=np.array(tables).T, outputs=tuple(outputs), readout=np.array(readout).T
    ))  # fmt: skip


def from_log(query: Query, symbols: Sequence[str], seed: int) -> Mealy:
    """The machine that state merging finds in a log of random words with wrong outputs."""
    draw, log = np.random.default_rng(seed), []
    seen: list[str] = []
    for _ in range(LOGS):
        word = [symbols[i] for i in draw.integers(0, len(symbols), 12)]
        answer = query(word)
        seen = list(dict.fromkeys([*seen, *answer]))
        log.append((word, [seen[draw.integers(0, len(seen))] if draw.random() < NOISE else one for one in answer]))
    return minimize(learn(log, kind="mealy", missing="loop", noise=NOISE).machine.to_mealy())


def version_rows(folder: Path, name: str, versions: tuple[str, str], seed: int) -> list[Row]:
    """Two versions of a library: their machines, and the shortest word on which they differ, asked of both again."""
    rows: list[Row] = []
    found: dict[str, tuple[Mealy, Query]] = {}
    for version in versions:
        module = library(folder / f"{name}-{version}", name)
        query, symbols = SYSTEMS[name](module)
        started = time.process_time()
        learned = learn_actively(query, symbols, seed=seed)
        machine = learned.machine.to_mealy()
        row: Row = {
            "library": name, "version": version, "seed": seed, "states": machine.n_states, "inputs": len(symbols),
            "queries": learned.traces, "seconds": round(time.process_time() - started, 1),
        }  # fmt: skip
        noisy = from_log(query, symbols, seed)
        word = distinguishing_word(noisy, machine)
        row |= {
            "log": LOGS, "noise": NOISE, "log_states": noisy.n_states, "log_equal": word is None,
            "log_difference": None if word is None else list(word),
        }  # fmt: skip
        if name == "h11":
            word = distinguishing_word(h11_documented(module, symbols), machine)
            row["documented_difference"] = None if word is None else list(word)
            if word is not None:
                documented = h11_documented(module, symbols)
                row["documented"], row["does"] = outputs_of(documented, word)[-1], query(list(word))[-1]
        found[version] = machine, query
        rows.append(row)
    (first, ask_first), (second, ask_second) = (found[version] for version in versions)
    word = distinguishing_word(first, second)
    row = {
        "library": name,
        "compared": list(versions),
        "seed": seed,
        "difference": None if word is None else list(word),
    }
    if word is not None:
        answers = [ask(list(word)) for ask in (ask_first, ask_second)]
        expected = [outputs_of(machine, word) for machine in (first, second)]
        row |= {"answers": [answer[-1] for answer in answers], "confirmed": answers == expected}
    return [*rows, row]


def outputs_of(machine: Mealy, word: Sequence[str]) -> list[str]:
    return [machine.outputs[o] for o in machine.output_ids(list(word)).tolist()]


VERSIONS = {"h11": ("0.9.0", "0.16.0"), "wsproto": ("1.0.0", "1.3.2"), "aiosmtpd": ("1.2.4", "1.4.6")}


def library_jobs(options: Options) -> Iterator[Job]:
    """Two versions of every library."""
    folder = Path(str(options.settings["folder"]))
    for name in options.tasks:
        for seed in options.seeds:
            key: Row = {"library": name, "version": VERSIONS[name][0], "seed": seed}
            yield Job(key, partial(version_rows, folder, name, VERSIONS[name], seed))


LIBRARIES = Campaign(
    name="protocol_libraries", file="protocol_libraries.jsonl", jobs=library_jobs, seeds=(42,), tasks=tuple(SYSTEMS),
    settings={"folder": "versions"},
    summary="Learn two versions of h11, wsproto and aiosmtpd by asking and from noisy logs, and compare them.",
)  # fmt: skip
