"""Errors of the command line: one sentence on standard error, and an exit code.

0 done and true, 1 done and false, 2 wrong call or bad input, 130 interrupted, 141 broken pipe. Bad input never ends in
a traceback; a traceback is a bug in exactstate.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from exactstate._text import printable
from exactstate.errors import ExactstateError, unknown

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


class Interrupted(ExactstateError):
    """The user interrupted the command; the message says how to resume."""


def exit_code_of(command: Callable[[], int | None]) -> int:
    """Run the command; its exit code, or that of its error, whose message is printed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _print_warning
            code = command()
        sys.stdout.flush()
        return _report("interrupted.", code) if code == INTERRUPTED else code or 0
    except (KeyboardInterrupt, typer.Abort):
        return _report("interrupted.", INTERRUPTED)
    except Interrupted as error:
        return _report(str(error), INTERRUPTED)
    except ExactstateError as error:
        return _report(_with_period(str(error)), BAD_INPUT)
    except BrokenPipeError:
        return _broken_pipe()
    except SystemExit as leave:  # typer makes one of a broken pipe, and of a request for completions
        return _broken_pipe() if isinstance(leave.__context__, BrokenPipeError) else int(leave.code or 0)
    except MemoryError:
        return _report("out of memory; use smaller sizes.", BAD_INPUT)
    except OSError as error:
        if error.filename is None:
            _discard_output()
        return _report(f"{error.filename or 'standard output'}: {(error.strerror or str(error)).lower()}.", BAD_INPUT)
    except Exception as error:
        # some versions of typer contain a copy of click: its errors are recognized by their method
        if not hasattr(error, "format_message"):
            raise
        # without a message the command was called without a verb, and help was shown
        return _report(_usage(error), BAD_INPUT) if error.format_message() else BAD_INPUT


def _broken_pipe() -> int:
    """The reader of the output has left, as in `exactstate tasks | head -1`: stop quietly."""
    _discard_output()
    return BROKEN_PIPE


def _discard_output() -> None:
    """Send the rest of the output to nowhere, so that flushing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    _report(f"note: {message}", 0)


def _usage(error: Any) -> str:
    sentence = _with_period(error.format_message().strip().replace("a valid int range", "a whole number"))
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else "exactstate"
    return f"{sentence[:1].lower()}{sentence[1:]} See `{path} --help`."


def _with_period(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _report(sentence: str, code: int) -> int:
    print(printable(f"exactstate: {sentence}"), file=sys.stderr)
    return code


class CommandGroup(TyperGroup):
    """Commands; an unknown one is an error that names similar ones. `kind` is what they are called in it."""

    kind = "verb"

    @classmethod
    def of(cls, kind: str) -> type[CommandGroup]:
        return type(f"CommandGroup_{kind}", (cls,), {"kind": kind})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise unknown(self.kind, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)
