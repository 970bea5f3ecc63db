"""What happens when something is wrong: one sentence on the error stream, and an exit code.

0 done and true, 1 done and false, 2 wrong call or bad input, 130 interrupted, 141 when the reader of a pipe has left.
Bad input never ends in a traceback; a traceback is a bug of ours.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from detent.errors import DetentError, unknown

WRONG, INTERRUPTED, LEFT_ALONE = 2, 130, 141


class Stopped(DetentError):
    """Work that was interrupted, with a sentence about what is left of it."""


def guarded(work: Callable[[], int | None]) -> int:
    """Do the work; its exit code, or that of what went wrong, which is said in a sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _note
            code = work()
        sys.stdout.flush()
        return _say("interrupted.", code) if code == INTERRUPTED else code or 0
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted.", INTERRUPTED)
    except Stopped as error:
        return _say(str(error), INTERRUPTED)
    except DetentError as error:
        return _say(_ended(str(error)), WRONG)
    except BrokenPipeError:
        return _left_alone()
    except SystemExit as leave:  # typer makes one of a broken pipe, and of a request for completions
        return _left_alone() if isinstance(leave.__context__, BrokenPipeError) else int(leave.code or 0)
    except MemoryError:
        return _say("there is not enough memory for this; ask for less at a time.", WRONG)
    except OSError as error:
        if error.filename is None:
            _close_output()
        return _say(f"{error.filename or 'standard output'}: {(error.strerror or str(error)).lower()}.", WRONG)
    except Exception as error:
        # typer carries its own copy of click in some versions and not in others: its errors are known by what they do
        if not hasattr(error, "format_message"):
            raise
        return _say(_usage(error), WRONG) if error.format_message() else WRONG  # called without a verb: help was shown


def _left_alone() -> int:
    """The reader has left, as in `detent tasks | head -1`: stop as programs do that know nothing of pipes."""
    _close_output()
    return LEFT_ALONE


def _close_output() -> None:
    """What is still to be printed goes nowhere, so that leaving does not fail over it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """A warning, as a sentence."""
    _say(f"note: {message}", 0)


def _usage(error: Any) -> str:
    sentence = _ended(error.format_message().strip().replace("Value error, ", "").replace(": Input ", ": it "))
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else "detent"
    return f"{sentence[:1].lower()}{sentence[1:]} See `{path} --help`."


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _say(sentence: str, code: int) -> int:
    print(f"detent: {sentence}", file=sys.stderr)
    return code


class Verbs(TyperGroup):
    """Verbs, or whatever `kind` calls them."""

    kind = "verb"

    @classmethod
    def of(cls, kind: str) -> type[Verbs]:
        return type(f"Verbs_{kind}", (cls,), {"kind": kind})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise unknown(self.kind, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)
