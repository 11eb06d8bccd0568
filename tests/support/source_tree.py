"""The package as Python trees: its files, their imports and functions, for rules that hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "bertsmith"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PYTHON_FILES = [
    *FILES,
    *TESTS,
    *sorted(ROOT.glob("benchmarks/*.py")),
]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(module: ast.Module, path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, relative ones made absolute, with the line."""
    package = ("bertsmith", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield origin, node.lineno
            for name in node.names:
                yield f"{origin}.{name.name}", node.lineno


def named_modules(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Strings that name a module of the package, as "bertsmith.runtime.engines:build"."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.fullmatch(r"(bertsmith(?:\.\w+)+)(?::\w+)?", node.value)
            if named:
                yield named[1], node.lineno


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def each_file(check: Callable[[Path], None]) -> Callable[[], None]:
    """One test that holds a rule for every file of the package."""

    def test() -> None:
        for path in FILES:
            check(path)

    test.__name__ = check.__name__
    return test
