"""Options of the verbs that can run on a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

Cluster = Annotated[
    str | None, typer.Option(metavar="local|ADDRESS", help="Run on a Ray cluster: of this machine, or at an address.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Tasks of a cluster at a time. Default: all of its processors.")
]
Partition = Annotated[int, typer.Option(min=1, metavar="MIB", help="Text of one task of a cluster, in MiB.")]
