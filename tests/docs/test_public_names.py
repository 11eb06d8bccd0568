"""What users meet: every public name has a docstring and a place in the reference, and the pages
import from public modules only."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import pydantic
import pytest
from torch import nn

import bertsmith
import bertsmith.errors
import bertsmith.parts

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = {
    "bertsmith": set(bertsmith.__all__),
    "bertsmith.parts": set(bertsmith.parts.__all__),
    "bertsmith.errors": {
        name
        for name, one in vars(bertsmith.errors).items()
        if inspect.isclass(one) and issubclass(one, bertsmith.BertsmithError)
    },
}
REFERENCES = {
    "bertsmith": ROOT / "docs" / "reference-python.md",
    "bertsmith.parts": ROOT / "docs" / "reference-parts.md",
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
TEXTS = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|^from .*$", re.MULTILINE)  # names are elsewhere
DOTTED = re.compile(r"\bbertsmith\.(?:parts\.)?[A-Za-z_]\w*")


def imports(page: Path) -> list[tuple[str, str | None]]:
    """Modules of the package that the blocks of a page import, with the names from them."""
    found: list[tuple[str, str | None]] = []
    for code in BLOCK.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                found += [(one.name, None) for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                found += [(node.module or "", one.name) for one in node.names]
    return [(module, name) for module, name in found if module.partition(".")[0] == "bertsmith"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_import_from_public_modules_only(page: Path) -> None:
    for module, name in imports(page):
        assert module in PUBLIC, f"{module} is no public module"
        assert name is None or name == "parts" or name in PUBLIC[module], f"{module}.{name}"


def test_pages_use_public_names_only() -> None:
    known = {*PUBLIC["bertsmith"], "parts", "errors", "__version__"}
    for page in PAGES:
        for code in BLOCK.findall(page.read_text(encoding="utf-8")):
            for used in DOTTED.findall(TEXTS.sub("", code)):
                _, first, *rest = used.split(".")
                assert first in known, f"{page.name}: {used}"
                assert first != "parts" or rest[0] in PUBLIC["bertsmith.parts"], used


@pytest.mark.parametrize("module", REFERENCES)
def test_every_public_name_is_in_the_reference_once(module: str) -> None:
    listed = DIRECTIVE.findall(REFERENCES[module].read_text(encoding="utf-8"))
    names = PUBLIC[module] - {"__version__"}
    assert sorted(listed) == sorted(
        [f"{module}.{name}" for name in names]
        + (["bertsmith.errors"] if module == "bertsmith" else [])
    )


@pytest.mark.parametrize("module", ["bertsmith", "bertsmith.parts"])
def test_every_public_name_and_its_members_are_documented(module: str) -> None:
    for name in sorted(PUBLIC[module] - {"__version__"}):
        value = getattr(sys.modules[module], name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
            assert not (value.__doc__ or "").startswith(f"{name}("), f"{name}: made by dataclass"
        if not inspect.isclass(value) or issubclass(value, Exception):
            continue
        inherited = {*dir(pydantic.BaseModel), *dir(nn.Module)}
        for member, one in inspect.getmembers(value):
            own = inspect.isfunction(one) or inspect.ismethod(one) or isinstance(one, property)
            if own and not member.startswith("_") and member not in inherited:
                assert inspect.getdoc(one), f"{module}: {name}.{member}"


def test_parts_and_everyday_names_do_not_overlap() -> None:
    both = PUBLIC["bertsmith"] & PUBLIC["bertsmith.parts"]
    assert both <= {"finetune"}  # of files, and of rows in memory
