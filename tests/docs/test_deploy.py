"""The Dockerfile and the systemd unit say what the docs say; neither is built or run here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from bertsmith.cli.commands.service.serve import KEY_VARIABLE, serve

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
UNIT = (ROOT / "deploy" / "bertsmith.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")


def steps() -> dict[str, list[str]]:
    """The arguments of the Dockerfile's instructions, lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in filter(None, text.splitlines()):
        word, rest = line.split(" ", 1)
        found.setdefault(word, []).append(rest)
    return found


def options() -> set[str]:
    import typer

    app = typer.Typer()
    app.command()(serve)
    return {name for one in get_command(app).params for name in one.opts}


def test_the_image_installs_what_the_page_installs() -> None:
    extras = re.search(r"pip install 'bertsmith(\[[\w,]+\])'", PAGE)
    assert extras
    (install,) = steps()["RUN"]
    assert f"'.{extras[1]}'" in install
    assert "--constraint constraints.txt" in install
    for name in " ".join(steps()["COPY"]).replace("./src", "").replace("./", "").split():
        assert (ROOT / name).exists(), name


def test_the_image_runs_without_rights_and_with_keys() -> None:
    (user,) = steps()["USER"]
    assert int(user) > 0
    command = [*_words(steps()["ENTRYPOINT"][0]), *_words(steps()["CMD"][0])]
    assert command[:2] == ["bertsmith", "serve"]
    assert "--keys" in command
    assert {word for word in command if word.startswith("--")} <= options()
    assert KEY_VARIABLE not in DOCKERFILE  # a variable of an image is there for everybody


@pytest.mark.parametrize("line", ["docker build", "docker run"])
def test_the_page_and_the_dockerfile_have_the_same_commands(line: str) -> None:
    def command(text: str) -> list[str]:
        lines = text.splitlines()
        first = next(n for n, one in enumerate(lines) if line in one)
        taken = lines[first].lstrip("# ")
        while taken.endswith("\\"):
            first += 1
            taken = taken[:-1] + lines[first].lstrip("# ")
        return shlex.split(taken)

    assert command(PAGE) == command(DOCKERFILE)
    assert "they do not build the image" in PAGE
    assert "Not built by the tests" in DOCKERFILE


def test_the_unit_starts_the_command_with_options_that_exist() -> None:
    (start,) = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    assert re.search(r"/bertsmith serve ", start)
    assert set(re.findall(r"--[\w-]+", start)) <= options()
    for line in (
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "KillMode=mixed",
    ):
        assert line in UNIT
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) > 30  # the drain of the service


def _words(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text)
