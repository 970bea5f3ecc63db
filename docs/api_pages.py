"""Write the pages of the documentation into build/docs, before the site is built: `python docs/api_pages.py`.

- Pages and pictures of docs/ are copied.
- `api/PACKAGE.md` lists every name that the package exports; mkdocstrings renders its signature and docstring.
- Pages link to files outside docs/ by their place in the repository. Such a file is copied to `source/PATH`: a page of
  the site if it is Markdown, a download otherwise. A link to a missing file stays as it is, and the strict build fails
  on it.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS, PAGES = ROOT / "docs", ROOT / "build" / "docs"
PACKAGES = (
    "nn", "baselines", "ops", "automata", "learning", "tasks", "train", "extract", "certify", "runtime", "evaluate",
    "report", "text", "integrations.transformers", "number_formats", "errors", "records",
)  # fmt: skip
INCLUDED = (
    "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "examples/README.md",
    "exactstate/certify/FORMAT.md", "exactstate/runtime/FORMAT.md",
)  # fmt: skip
"""Pages outside docs/ that the navigation lists."""
OUTSIDE = "source"
"""Folder of the site for files that are not in docs/."""
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)\s#])")
FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)


def write_pages(folder: Path) -> None:
    """All pages and files of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    own = [path for path in DOCS.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    for path in {*own, *outside([*own, *(ROOT / name for name in INCLUDED)])}:
        place = folder / site_path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(with_links(path), encoding="utf-8")
        else:
            shutil.copyfile(path, place)
    (folder / "api").mkdir()
    (folder / "api" / "index.md").write_text(overview(), encoding="utf-8")
    for name in PACKAGES:
        (folder / "api" / f"{name}.md").write_text(api_page(name), encoding="utf-8")


def outside(pages: list[Path]) -> set[Path]:
    """Every file outside docs/ among these, and those that they link to, directly or over other such files."""
    found: set[Path] = set()
    while pages:
        page = pages.pop()
        linked = {page, *targets(page)} if page.suffix == ".md" else {page}
        new = {path for path in linked if not path.is_relative_to(DOCS)} - found
        found |= new
        pages += new
    return found


def with_links(page: Path) -> str:
    """The text of a page, with links to files outside docs/ pointing at their place in the site."""
    here = os.path.dirname(site_path(page))

    def rewritten(link: re.Match[str]) -> str:
        target = resolve(page, link[0])
        return link[0] if target is None else os.path.relpath(site_path(target), here)

    pieces = FENCE.split(page.read_text(encoding="utf-8"))
    return "".join(piece if piece.startswith("```") else LINK.sub(rewritten, piece) for piece in pieces)


def resolve(page: Path, link: str) -> Path | None:
    """The file of the repository that a relative link leads to."""
    if re.match(r"[a-z]+:", link):
        return None
    target = Path(os.path.normpath(page.parent / link))
    return target if target.is_file() and target.is_relative_to(ROOT) else None


def targets(page: Path) -> Iterator[Path]:
    """The files of the repository that a page links to."""
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target := resolve(page, link):
            yield target


def site_path(path: Path) -> str:
    """Where a file of the repository is in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"{OUTSIDE}/{path.relative_to(ROOT).as_posix()}"


def overview() -> str:
    """The page that lists the names of `import exactstate` and the packages."""
    import exactstate

    lines = ["# API", "", "The names of `import exactstate`:", ""]
    lines += [f"- [`exactstate.{name}`][{path}]" for name, path in exports("exactstate")]
    lines += ["", "The packages:", ""]
    lines += [
        f"- [`exactstate.{name}`]({name}.md): {first_sentence(import_module(f'exactstate.{name}'))}"
        for name in PACKAGES
    ]
    assert exactstate.__all__
    return "\n".join(lines) + "\n"


def api_page(package: str) -> str:
    """The page of a package: each exported name as a mkdocstrings block."""
    module = import_module(f"exactstate.{package}")
    lines = [f"# exactstate.{package}", "", (module.__doc__ or "").strip(), ""]
    for name, path in exports(f"exactstate.{package}"):
        lines += [f"::: {path}", "    options:", f"      heading: {name}", f"      toc_label: {name}", ""]
    return "\n".join(lines)


def exports(package: str) -> list[tuple[str, str]]:
    """(name, dotted path of its definition) of what a package or module exports: `__all__`, or what it defines."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (isclass(value) or isfunction(value)) and value.__module__ == package
    ]
    return [(name, definition(package, name)) for name in sorted(names, key=str.lower)]


def definition(package: str, name: str) -> str:
    """The dotted path of the definition, through any number of re-exports."""
    value = getattr(import_module(package), name)
    if hasattr(value, "_exports"):  # a package that can be called: its function
        return definition(f"{package}.{name}", name)
    if (isclass(value) or isfunction(value)) and value.__module__.startswith("exactstate."):
        return f"{value.__module__}.{value.__qualname__}"
    source = ast.parse(Path(str(import_module(package).__file__)).read_text(encoding="utf-8"))
    froms = (node for node in ast.walk(source) if isinstance(node, ast.ImportFrom))
    module = next((str(node.module) for node in froms if name in {alias.name for alias in node.names}), package)
    return f"{module}.{name}"


def first_sentence(module: Any) -> str:
    return " ".join((module.__doc__ or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    write_pages(PAGES)
