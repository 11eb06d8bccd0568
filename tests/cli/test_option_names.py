"""Every option comes from a setting, and one name means one thing in all commands."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest
import typer.main

from bertsmith.cli.app import load_command
from bertsmith.cli.command_table import COMMANDS
from bertsmith.setting import SettingField

# Options whose help says more in some commands: the meaning, up to the first mark, is the same.
EXPLAINED = {
    *("--budget", "--device", "--dim", "--format", "--kind", "--knowledge", "--label", "--layer"),
    *("--lr", "--max-new", "--max-words", "--min-count", "--model", "--on-error", "--out"),
    *("--pair", "--precision", "--seed", "--seeds", "--segmenter", "--size", "--steps"),
    *("--temperature", "--text", "--text-file", "--top-k", "-k", "--probe"),
}


def every_option() -> list[tuple[str, Any, SettingField | None]]:
    """Command, parameter of typer and setting of every option."""
    found: list[tuple[str, Any, SettingField | None]] = []
    for name in COMMANDS:
        command: Any = typer.main.get_command(load_command(name).app)
        inner = getattr(command, "commands", None) or {"": command}
        for second, one in inner.items():
            settings = getattr(one.callback, "settings", {})
            found += [
                (f"{name} {second}".strip(), param, settings.get(param.name))
                for param in one.params
                if param.param_type_name == "option" and param.name != "help"
            ]
    return found


OPTIONS = every_option()


def meaning(help: str) -> str:
    """What an option means: its help up to the first mark."""
    return re.split(r"[.;:(,]", help)[0].strip()


def test_every_option_comes_from_a_setting() -> None:
    assert len(OPTIONS) > 800
    written = [f"{command} {param.opts[0]}" for command, param, one in OPTIONS if one is None]
    assert written == []


def test_one_name_has_one_help_text() -> None:
    texts: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for command, param, _ in OPTIONS:
        help = param.help or ""
        name = param.opts[0]
        texts[name][meaning(help) if name in EXPLAINED else help].append(command)
    several = {name: dict(found) for name, found in texts.items() if len(found) > 1}
    assert several == {}
    assert set(texts) >= EXPLAINED


@pytest.mark.parametrize("name", sorted(EXPLAINED))
def test_an_explained_option_needs_its_place_in_the_list(name: str) -> None:
    helps = {param.help for _, param, _ in OPTIONS if param.opts[0] == name}
    assert len(helps) > 1


def test_an_option_says_what_it_is_in_one_sentence_that_ends() -> None:
    for command, param, _ in OPTIONS:
        assert re.fullmatch(r"\S.*[.)]", param.help or "", re.DOTALL), (command, param.opts[0])
