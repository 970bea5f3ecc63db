"""Groups of verbs in which an unknown one is answered with its neighbours."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from detent.errors import unknown


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
