"""Every snippet of the README and the docs runs as written: Python blocks and `bertsmith` lines.

The blocks of one page run in order, in one empty folder. A block right after a shell block that
is marked `text` is output for the reader and is not run; `make`, `pip` and `git` lines are not run
here either (`make` is what runs this).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bertsmith.cli.app import main
from bertsmith.cli.command_table import COMMANDS, HEADINGS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")
PLAIN = re.compile(r"bertsmith [^|<>$`&;()]*")
CONTINUED = re.compile(r"^(bertsmith [^\n]*?) *\\\n *", re.MULTILINE)
HEREDOC = re.compile(r"<<'(\w+)'")
NOT_HERE = ("make ", "pip ", "git ", "cd ", "python benchmarks/")
GENERATED = {"settings.md", "options.md"}  # by docs/site when the site is built
KNOWN = {"python", "bash", "text", "toml", "json", "console", "cpp", ""}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text[: m.start()].count("\n") + 2) for m in FENCE.finditer(text)]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in ("python", "bash")]


@pytest.fixture
def shell(request, own_process, tmp_path, monkeypatch) -> dict[str, str]:
    """An environment whose `bertsmith` is this one, with a database for a page that uses one."""
    if "postgresql:///" in request.node.callspec.params["page"].read_text(encoding="utf-8"):
        server = request.getfixturevalue("postgres")
        monkeypatch.setenv("PGHOST", str(server.folder))
        monkeypatch.setenv("PGUSER", "postgres")
    tools = tmp_path / "tools"
    tools.mkdir()
    script = tools / "bertsmith"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bertsmith "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    source = str(ROOT / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "page").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    return dict(os.environ)


def steps(code: str) -> Iterator[str]:
    """A shell block as steps: plain `bertsmith` lines alone, everything between them together.

    A `bertsmith` line that ends in a backslash goes on in the next one.
    """
    while code != (code := CONTINUED.sub(r"\1 ", code)):
        pass
    script: list[str] = []
    ending = ""
    for line in code.splitlines():
        if ending or not PLAIN.fullmatch(line):
            script.append(line)
            opened = HEREDOC.search(line)
            ending = opened[1] if opened else "" if line == ending else ending
            continue
        if script:
            yield "\n".join(script)
        script = []
        yield line
    if script:
        yield "\n".join(script)


def run_step(step: str, place: str, shell: dict[str, str]) -> None:
    if PLAIN.fullmatch(step):  # in this process: torch is loaded once for all pages
        with pytest.raises(SystemExit) as end:
            main(shlex.split(step)[1:])
        assert not end.value.code, f"{place}\n{step}"
        return
    lines = "\n".join(x for x in step.splitlines() if not x.startswith(NOT_HERE))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        env=shell,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{place}\n{step}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=name)
def test_snippets_run_as_written(page, shell) -> None:
    namespace: dict[str, object] = {"__name__": "snippet"}
    for block in runnable(page):
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.code
            exec(compile(code, str(page), "exec", dont_inherit=True), namespace)
            continue
        for step in steps(block.code):
            run_step(step, f"{name(page)}:{block.line}", shell)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_name_their_language_and_links_lead_somewhere(page) -> None:
    for block in blocks(page):
        assert block.language in KNOWN, f"{name(page)}:{block.line} {block.language}"
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target in GENERATED:
            continue
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"


def test_the_reference_has_a_section_for_every_command_and_lists_them_by_heading() -> None:
    reference = (ROOT / "docs" / "reference-cli.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert re.search(rf"^## bertsmith {command}\b", reference, re.MULTILINE), command
    for heading, under in HEADINGS.items():
        (row,) = re.findall(rf"^\| \*\*{heading}\*\* \| (.*) \|$", reference, re.MULTILINE)
        listed = [words.split()[0] for words in re.findall(r"\[([^\]]+)\]", row)]
        assert list(dict.fromkeys(listed)) == list(under)


def test_every_run_time_dependency_has_a_reason() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    for requirement in project["dependencies"]:
        package = re.split(r"[<>=!~ ]", requirement)[0]
        assert f"| {package} |" in reasons, package
        assert f"\n{package}==" in pins, package


def test_a_line_that_ends_in_a_backslash_goes_on() -> None:
    code = "\n".join(
        [
            "bertsmith a --x 1 \\",
            "    --y 2 \\",
            "  --z",
            "for n in 1; do \\",
            "  echo; done",
            "bertsmith b",
        ]
    )
    assert list(steps(code)) == [
        "bertsmith a --x 1 --y 2 --z",
        "for n in 1; do \\\n  echo; done",
        "bertsmith b",
    ]
