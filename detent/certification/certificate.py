"""A certificate: a file that says what a model does, with all that is needed to check it again without the model.

`FORMAT.md` beside this file describes every entry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from detent.certification.content import content_of
from detent.certification.sealing import laid_out, sealed
from detent.certification.subject import Errors, Extraction
from detent.certification.verdict import Verdict
from detent.errors import InvalidInput
from detent.records import write_atomically


@dataclass(frozen=True, eq=False)
class Certificate:
    """The content of a certificate, as it stands in the file."""

    content: dict[str, Any]

    @classmethod
    def of(
        cls, found: Extraction, verdict: Verdict, *, name: str = "", rounding: Mapping[str, Errors] | None = None
    ) -> Certificate:
        """The certificate of a model that was certified.

        - `name`: what the model is called, for people.
        - `rounding`: errors of formats by name, as `detent.extraction.rounding_errors` finds them.
        """
        if not verdict:
            raise InvalidInput(f"only what is certified gets a certificate; {verdict.explain()}")
        return cls(sealed(content_of(found, verdict, name, rounding or {})))

    @property
    def name(self) -> str:
        return self.content["name"]

    @property
    def sha256(self) -> str:
        """Of the content: the name of this certificate among all others."""
        return self.content["sha256"]

    @property
    def proved(self) -> tuple[str, ...]:
        """Formats in which rounding changes nothing."""
        return tuple(self.content["proved"])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, laid_out(self.content))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """The certificate in a file; whether it is valid is for `check` to say."""
        from detent.certification.checking.reading import read

        return cls(read(path))

    def summary(self) -> str:
        """What it says, for people."""
        from detent.certification.summary import summary

        return summary(self.content)
