"""The demo: passages from Python itself, answers that fit, nothing written elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import environment, run

import bertsmith
from bertsmith.demo import library_docs
from bertsmith.demo.library_docs import Passage, passages

pytestmark = pytest.mark.usefixtures("own_process")


def test_passages_are_many_distinct_and_always_the_same() -> None:
    found = passages()
    assert 3000 < len(found) < 6000
    assert len({passage.text for passage in found}) == len(found)
    assert passages() == found
    assert {'help("lists")', "copy.deepcopy", "subprocess.run"} <= {p.source for p in found}


def test_a_missing_module_is_no_obstacle(monkeypatch) -> None:
    monkeypatch.setattr(library_docs, "MODULES", ("no_such_module", "bisect"))
    assert any(passage.source == "bisect.insort" for passage in passages())


def test_the_demo_answers_and_keeps_what_it_made(tmp_path, monkeypatch, capsys) -> None:
    some = [
        Passage("tempfile.TemporaryDirectory", "Create a temporary directory, removed at the end."),
        Passage("math.sqrt", "Return the square root of x."),
        Passage("[evil]", "[/bold] markup and a long text: " + "word " * 400),
    ]
    monkeypatch.setattr(library_docs, "passages", lambda: some)
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--out", "kept", "--ask", "Which [folder] deletes itself?") == 0
    shown = capsys.readouterr().out
    first = shown.partition("? Which [folder] deletes itself?")[2].splitlines()[1]
    assert "tempfile.TemporaryDirectory" in first
    assert "[evil]" in shown
    assert "1 of 3 texts were longer than 256 tokens" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "index",
        "passages.jsonl",
    ]
    with bertsmith.Index.open("kept/index") as index:
        (hits,) = index.search("the square root of a number", k=1)
    assert (hits[0].meta["source"], hits[0].text) == (some[1].source, some[1].text)
    kept = (tmp_path / "kept" / "passages.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in kept.splitlines()]
    assert [row["source"] for row in rows] == [passage.source for passage in some]


def test_no_command_opens_a_connection(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("a text\n")
    script = """
import sys
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        print("connection:", event, arguments)
sys.addaudithook(hook)
from bertsmith.cli.app import main
model = "all-MiniLM-L6-v2"
commands = [["info", model], ["tokenize", model, "a"], ["embed", model, "a.txt", "--out", "v.npy"],
            ["vocab", "learn", "a.txt", "--vocab-size", "50", "--out", "vocab"]]
for command in commands:
    try:
        main(command)
    except SystemExit as end:
        assert not end.code, command
"""
    more = environment()
    for name in ("HOME", "HF_HUB_OFFLINE"):
        more.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=more,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "connection:" not in done.stdout
