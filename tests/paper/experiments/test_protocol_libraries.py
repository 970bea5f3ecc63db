"""Machines of running protocol libraries: h11 as installed, beside the tables that it documents."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from exactstate.automata import distinguishing_word
from exactstate.errors import InvalidConfig
from exactstate.learning import learn_actively
from paper.experiments.protocol_libraries import LIBRARIES, h11_documented, h11_server, library, outputs_of
from paper.tables import protocol_libraries_table


@pytest.fixture
def h11() -> ModuleType:
    return pytest.importorskip("h11", reason="its machine is learned from the library itself")  # type: ignore[no-any-return]


def test_h11_departs_from_its_tables_where_it_raises_another_error(h11: ModuleType) -> None:
    query, symbols = h11_server(h11)
    machine = learn_actively(query, symbols).machine.to_mealy()
    documented = h11_documented(h11, symbols)
    word = distinguishing_word(documented, machine)
    if h11.__version__ != "0.16.0":
        pytest.skip(f"h11 0.16.0 is the version whose difference is known; this is {h11.__version__}")
    assert word is not None
    assert list(word) == ["response", "get"]
    assert outputs_of(documented, word)[-1] == "ERROR/SEND_BODY!RemoteProtocolError"
    assert outputs_of(machine, word)[-1] == query(list(word))[-1] == "ERROR/SEND_BODY!AttributeError"


def test_h11_documented_permits_a_request_and_its_response(h11: ModuleType) -> None:
    documented = h11_documented(h11, h11_server(h11)[1])
    word = ["get", "response", "data", "end", "next", "get", "data"]
    assert outputs_of(documented, word) == [
        "DONE/SEND_RESPONSE", "DONE/SEND_BODY", "DONE/SEND_BODY", "DONE/DONE", "IDLE/IDLE", "DONE/SEND_RESPONSE",
        "MUST_CLOSE/ERROR!LocalProtocolError",
    ]  # fmt: skip


def test_library_refuses_a_folder_without_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"has no wsproto; make it with pip install --no-deps --target"):
        library(tmp_path, "wsproto")


def test_protocol_libraries_table_has_a_line_for_every_comparison() -> None:
    about = {"library": "a", "states": 3, "inputs": 2, "queries": 9}
    first, second = about | {"version": "1", "log_equal": True}, about | {"version": "2", "log_equal": False}
    between = {"library": "a", "compared": ["1", "2"], "difference": ["x", "y"], "answers": ["p", "q"]}
    table = protocol_libraries_table([first, second, between])
    assert table.rows == [("a", "1, 2", "3, 3", "2", "9, 9", "yes, no", "`x y`: `p` and `q`")]
    assert [job.key["library"] for job in LIBRARIES.jobs(LIBRARIES.options())] == ["h11", "wsproto", "aiosmtpd"]
