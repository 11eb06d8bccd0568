"""The troubleshooting page has every error and exit code; its messages are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import bertsmith
import bertsmith.api.estimators  # has an error of its own
from bertsmith.cli.shared.last_resort import OUT_OF_MEMORY, SOFTWARE
from bertsmith.errors import BertsmithError
from bertsmith.training.loop.run import STOPPED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SOURCE = Path(bertsmith.__file__).parent
SIGNALS = {130, 141, 143}  # Ctrl-C, SIGPIPE, SIGTERM


def errors(root: type[BertsmithError] = BertsmithError) -> Iterator[type[BertsmithError]]:
    """Every error of the package; tests may have defined others."""
    if root.__module__.startswith("bertsmith"):
        yield root
    for child in root.__subclasses__():
        yield from errors(child)


def section(title: str) -> str:
    found: str = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return found


def test_every_error_is_on_the_page_with_its_exit_code() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", section("Kinds of errors"), re.MULTILINE))
    assert listed == {one.__name__: str(one.exit_code) for one in errors()}


def test_every_exit_code_is_in_the_table() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", section("Exit codes"), re.MULTILINE)
    listed = {int(code) for cell in cells for code in cell.split(",")}
    codes = {one.exit_code for one in errors()}
    assert SOFTWARE not in codes
    assert listed == {0, STOPPED, SOFTWARE, OUT_OF_MEMORY} | SIGNALS | codes


def test_the_codes_stand_in_one_table_only() -> None:
    others = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "troubleshooting.md"]
    assert not [path for path in others if "| exit code |" in path.read_text(encoding="utf-8")]


def test_every_message_of_the_page_is_one_of_the_code() -> None:
    """A message that was reworded must be reworded here, too; `...` stands for what varies."""
    written = _strings()
    missing = []
    titles = ("Model folders", "Weights", "Data files", "Hardware and speed", "Disk and locks")
    for title in (*titles, "Writing text", "Databases", "The service", "Training"):
        for row in section(title).splitlines()[2:]:
            for message in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
                parts = [part.strip() for part in message.split("...")]
                missing += [part for part in parts if len(part) > 4 and part not in written]
    assert not missing


def _strings() -> str:
    """Every string of the package, with a mark where a value is filled in."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    one.value if isinstance(one, ast.Constant) else "\0" for one in node.values
                )
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)
