"""MkDocs hooks: the API pages, and the files outside docs/ that pages link to.

- `api/PACKAGE.md` lists every name that the package exports; mkdocstrings renders its signature and docstring.
- Pages link to files outside docs/ by their place in the repository. In the site such a file becomes `source/PATH`: a
  page if it is Markdown, a download otherwise. A link to a missing file stays as it is, and `mkdocs build --strict`
  fails on it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGES = (
    "nn", "baselines", "ops", "automata", "learning", "tasks", "train", "extract", "certify", "runtime", "evaluate",
    "report", "number_formats", "errors", "records",
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


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the API pages to the navigation."""
    section: list[dict[str, str]] = next((entry["API"] for entry in config.nav or [] if "API" in entry), [])
    listed = {path for entry in section for path in entry.values()}
    section += [{f"exactstate.{name}": path} for name in PACKAGES if (path := f"api/{name}.md") not in listed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the API pages and every file outside docs/ that a page links to, directly or over other such files."""
    files.append(File.generated(config, "api/index.md", content=overview()))
    for name in PACKAGES:
        files.append(File.generated(config, f"api/{name}.md", content=api_page(name)))
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    pages += [ROOT / path for path in INCLUDED]
    outside: set[Path] = set()
    while pages:
        page = pages.pop()
        linked = {page, *targets(page)} if page.suffix == ".md" else {page}
        new = {path for path in linked if not path.is_relative_to(DOCS)} - outside
        outside |= new
        pages += new
    for path in sorted(outside):
        files.append(File.generated(config, site_path(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links to files outside docs/ at their place in the site."""
    source = page.file.abs_src_path
    if source is None:
        return markdown
    here = PurePosixPath(page.file.src_uri).parent

    def rewritten(link: re.Match[str]) -> str:
        target = resolve(Path(source), link[0])
        return link[0] if target is None else os.path.relpath(site_path(target), here)

    pieces = FENCE.split(markdown)
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
