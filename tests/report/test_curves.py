"""The page of a run: every curve and figure is there, and hostile names stay text."""

from __future__ import annotations

import json

import pytest
from html_tree import PAYLOADS, Tree

from bertsmith.report.curves import curves_page, read_log, write_report


def rows(part: str = "mlm", message: str = "x") -> list[dict]:
    train = [
        {
            "kind": "train",
            "step": step,
            "losses": {part: 9 / step},
            "accuracy": {part: step / 100},
            "rate": 1e-4,
            "norm": 1.0,
            "tokens": 100 * step,
            "tokens_per_second": 1000.0,
            "seconds": 0.1 * step,
        }
        for step in (10, 20, 30)
    ]
    found = {
        "kind": "eval",
        "step": 20,
        "losses": {part: 5.0},
        "accuracy": {part: 0.25},
        "perplexity": {part: "inf"},
        "counts": {part: 1234},
    }
    final = {**found, "kind": "final", "step": 30, "weights": "last"}
    return [*train, found, final, {"kind": "diverged", "step": 30, "message": message}]


def test_curves_and_held_out_figures_are_on_the_page() -> None:
    whole = curves_page(rows(), title="my run", settings="[run]\nseed = 0\n")
    tree = Tree(whole)
    assert sum(tag == "svg" for tag, _ in tree.tags) == 5
    assert sum(tag == "polyline" for tag, _ in tree.tags) == 5
    text = " ".join(tree.texts)
    for expected in ("my run", "held out: mlm", "1,234", "0.25", "seed = 0", "3,000"):
        assert expected in text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_in_any_field_changes_the_tree(payload) -> None:
    benign = Tree(curves_page(rows("name", "word"), title="title", settings="one"))
    hostile = Tree(curves_page(rows(payload, payload), title=payload, settings=payload))
    assert hostile.tags == benign.tags


def test_an_empty_or_torn_log_still_gives_a_page(tmp_path) -> None:
    assert "nothing was recorded" in curves_page([], title="empty")
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps(rows()[0]).encode() + b'\n{"kind": "tra')
    assert len(read_log(path)) == 1
    assert write_report(tmp_path, "torn").read_text(encoding="utf-8").count("<svg") == 5


def test_a_long_run_stays_a_small_file() -> None:
    many = [{**rows()[0], "step": step} for step in range(1, 50_001)]
    assert len(curves_page(many, title="long")) < 1_000_000
