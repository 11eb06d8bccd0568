"""Control characters in labels, texts, column and file names never reach the terminal."""

from __future__ import annotations

import ast
import json
import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import rows, tiny_folder

import bertsmith
from bertsmith.cli.shared import console
from bertsmith.labeled.example import Label

# Sets the title of the window, rings the bell, and a color by its one-byte form (C1).
EVIL = "\x1b]0;owned\x07\x9b31m"
FORBIDDEN = ("\x1b]", "\x07", "\x9b")
LABELS = {"no": f"no{EVIL}", "yes": f"yes{EVIL}"}
CLI = Path(bertsmith.__file__).parent / "cli"


@pytest.fixture(autouse=True)
def _no_handlers_after() -> None:
    yield
    logging.getLogger("bertsmith").handlers.clear()


@pytest.fixture(scope="module")
def hostile(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fine-tuned model and rows, whose names all hold control characters."""
    home = tmp_path_factory.mktemp("hostile") / f"home{EVIL}"
    model = shutil.copytree(classifier, home / f"model{EVIL}")
    for file in ("bertsmith.json", "config.json"):
        record = json.loads((model / file).read_text())
        if "id2label" in record:
            record["id2label"] = {k: LABELS[v] for k, v in record["id2label"].items()}
            record["label2id"] = {LABELS[k]: v for k, v in record["label2id"].items()}
            record[f"key{EVIL}"] = 1
        else:
            record["task"]["labels"] = [LABELS[one] for one in record["task"]["labels"]]
            record.pop("data", None)
        (model / file).write_text(json.dumps(record))
    (model / "hashes.json").unlink()  # the folder is as a stranger wrote it
    (model / f"extra{EVIL}.txt").write_text("x")
    lines = [f"text,label,more{EVIL}"]
    for one in rows(60, seed=8):
        assert isinstance(one.target, Label)
        lines.append(f"{one.texts[0]},{LABELS[one.target.name]},{EVIL}")
    (home / f"rows{EVIL}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (home / f"texts{EVIL}.txt").write_text(f"a red bird{EVIL}\na stone\n" * 30, encoding="utf-8")
    tiny_folder(home / "untrained")
    return home


MODEL, ROWS, TEXTS = f"model{EVIL}", f"rows{EVIL}.csv", f"texts{EVIL}.txt"
Arguments = Callable[[Path, Path], list[str | Path]]
COMMANDS: dict[str, Arguments] = {
    "predict a text": lambda home, out: ["predict", home / MODEL, f"a bird{EVIL}"],
    "predict as JSON": lambda home, out: ["predict", home / MODEL, f"a bird{EVIL}", "--json"],
    "predict a file": lambda home, out: ["predict", home / MODEL, home / ROWS],
    "predict into a file": lambda home, out: [
        *("predict", home / MODEL, home / ROWS, "--out", out / f"{EVIL}.csv"),
    ],
    "predict no file": lambda home, out: ["predict", home / MODEL, home / f"no{EVIL}.csv"],
    "predict no column": lambda home, out: [
        *("predict", home / MODEL, home / ROWS, "--text", f"column{EVIL}"),
    ],
    "evaluate": lambda home, out: ["evaluate", home / MODEL, home / ROWS, "--out", out / EVIL],
    "evaluate as JSON": lambda home, out: ["evaluate", home / MODEL, home / ROWS, "--json"],
    "info": lambda home, out: ["info", home / MODEL],
    "info as JSON": lambda home, out: ["info", home / MODEL, "--json"],
    "info, no folder": lambda home, out: ["info", home / f"nothing{EVIL}"],
    "tokenize": lambda home, out: ["tokenize", home / MODEL, f"bird{EVIL}"],
    "tokenize as JSON": lambda home, out: ["tokenize", home / MODEL, f"bird{EVIL}", "--json"],
    "embed": lambda home, out: [
        *("embed", home / MODEL, home / TEXTS, "--out", out / f"{EVIL}.npy"),
    ],
    "embed, wrong ending": lambda home, out: [
        *("embed", home / MODEL, home / TEXTS, "--out", out / f"x.{EVIL}"),
    ],
    "convert": lambda home, out: ["convert", home / MODEL, out / f"copy{EVIL}"],
    "compare": lambda home, out: [
        *("compare", home / MODEL, home / MODEL, home / ROWS),
    ],
    "lengths": lambda home, out: ["lengths", home / ROWS, "--model", home / "untrained"],
    "finetune": lambda home, out: [
        *("finetune", home / ROWS, "--model", home / "untrained", "--out", out / EVIL),
        *("--epochs", "1"),
    ],
    "vocab learn": lambda home, out: [
        *("vocab", "learn", home / TEXTS, "--out", out / EVIL, "--vocab-size", "300"),
    ],
    "corpus build": lambda home, out: [
        *("corpus", "build", home / TEXTS, "--model", home / "untrained", "--out", out / EVIL),
    ],
    "mask preview": lambda home, out: [
        *("mask", "preview", home / f"no{EVIL}", home / TEXTS),
    ],
    "score": lambda home, out: ["lm", "score", home / MODEL, f"a text{EVIL}"],
    "fill": lambda home, out: ["fill", home / MODEL, f"a [MASK]{EVIL}"],
    "recipes": lambda home, out: ["recipes", "show", f"no{EVIL}"],
    "no command": lambda home, out: [f"no{EVIL}"],
    "no option": lambda home, out: ["info", f"--no{EVIL}"],
    "a traceback": lambda home, out: ["--debug", "info", home / f"nothing{EVIL}"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("terminal", [False, True], ids=["piped", "terminal"])
def test_no_command_passes_control_characters_on(
    hostile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    terminal: bool,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    code = run(*COMMANDS[name](hostile, tmp_path))
    shown = capsys.readouterr()
    assert code != 70, shown.err
    piped_json = not terminal and ("JSON" in name or name == "predict a file")
    found = [one for one in FORBIDDEN if one in shown.err or (one in shown.out and not piped_json)]
    assert not found, shown
    assert "\x1b" not in shown.out + shown.err or terminal  # colors are for terminals
    assert "owned" in shown.out + shown.err, "the test shows nothing of the data: it proves nothing"
    if "JSON" in name:
        json.loads(shown.out)


def test_json_has_the_same_value_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"a\x7f\x9b": ["\u202e\u2028\u200b", "\x1b[2J", "汉字 é"]}
    console.write_json(record)
    piped = capsys.readouterr().out
    assert "\x9b" in piped  # for programs: as it always was
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    console.write_json(record)
    shown = capsys.readouterr().out
    assert json.loads(shown) == json.loads(piped) == record
    assert all(c == "\n" or c.isprintable() for c in shown)


def test_only_the_console_writes() -> None:
    """One place through which everything goes: a new command cannot forget to escape."""
    faults = []
    for path in sorted(CLI.rglob("*.py")):
        if path == CLI / "shared" / "console.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            streams = called.startswith(("sys.stdout.", "sys.stderr."))
            writes = streams and not called.endswith(
                (".isatty", ".flush", ".fileno", ".reconfigure")
            )
            if writes or called in ("print", "typer.echo", "typer.secho", "Console", "pprint"):
                faults.append(f"{path.name}:{node.lineno} {called}")
    assert not faults
