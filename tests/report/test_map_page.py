"""The page of a map: texts are data, one script and one style are allowed by their hashes."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from html_tree import PAYLOADS, Tree

from bertsmith.sentences.map.page import MapPoint, MapView, map_page
from bertsmith.sentences.map.projection import Projection

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def page_of(texts: list[str], **more: object) -> str:
    points = [MapPoint(text, row, text) for row, text in enumerate(texts, start=1)]
    places = np.random.default_rng(0).standard_normal((len(points), 2))
    view = {
        "title": texts[0],
        "points": points,
        "projections": [Projection("tsne", places), Projection("pca", 2 * places, (0.5, 0.25))],
        "legend": texts[0],
        "facts": {"model": texts[0], "total": 10},
    }
    return map_page(MapView(**(view | more)))


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_changes_the_tree(payload) -> None:
    hostile = page_of([payload, "b", "c"])
    assert Tree(hostile).tags == Tree(page_of(["a", "b", "c"])).tags
    assert data_of(hostile)["texts"][1:] == ["b", "c"]
    hostile.encode("utf-8")


def test_only_the_script_and_the_style_of_the_page_are_allowed() -> None:
    page = page_of(["a", "b", "c"])
    policy = next(value for name, value in Tree(page).attributes if "default-src" in value)
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    tags = [tag for tag, _ in Tree(page).tags]
    assert tags.count("script") == 2  # one of them is JSON
    assert not {"link", "img", "iframe", "object", "a", "form"} & set(tags)
    assert not any(
        name.startswith("on") or name == "style" for _, names in Tree(page).tags for name in names
    )
    assert "://" not in page
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", page
    )


def test_labels_beyond_the_colors_share_one() -> None:
    names = [f"label {number % 15:02}" for number in range(60)] + ["label 14"]
    points = [MapPoint("text", row, name) for row, name in enumerate(names, start=1)]
    points.append(MapPoint("text", 62))
    places = np.random.default_rng(0).standard_normal((62, 2))
    data = data_of(page_of(["t"], points=points, projections=[Projection("pca", places, (1, 0))]))
    assert data["names"][:2] == ["label 14", "label 00"]
    assert len(data["names"]) == 11
    assert data["others"] == 4
    assert data["labels"].count(-1) == 16
    assert data["labels"][-1] == -2


def test_one_scale_for_both_axes_and_upwards_is_up() -> None:
    places = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    points = [MapPoint("t", row) for row in (1, 2, 3)]
    (plane,) = data_of(page_of(["t"], points=points, projections=[Projection("pca", places)]))[
        "maps"
    ]
    assert plane["x"] == [0, 99_999, 0]
    first, _, third = plane["y"]
    assert first - third == pytest.approx(99_999 / 4, abs=1)


def test_long_texts_are_cut_at_the_end_or_around_the_word() -> None:
    long = "x" * 1000 + " \U0001f600\n\u200bbank " + "y" * 1000
    start = long.index("bank")
    points = [MapPoint(long, 1, None, (start, start + 4)), MapPoint("bank", 2, None, (0, 4))]
    places = np.eye(3)[:, :2]
    more = {"points": [*points, points[1]], "projections": [Projection("pca", places)]}
    data = data_of(page_of(["t"], words=True, **more))
    text, (at, length) = data["texts"][0], data["spans"][0]
    units = text.encode("utf-16-le")
    assert units[2 * at : 2 * (at + length)].decode("utf-16-le") == "bank"
    assert text[0] == text[-1] == "…"
    assert len(text) < 320
    plain = data_of(page_of([long, "b", "c"]))["texts"][0]
    assert plain == "x" * 320 + "…"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_hostile_texts_as_text(tmp_path: Path) -> None:
    page = tmp_path / "map.html"
    page.write_text(page_of(PAYLOADS[:11]), encoding="utf-8")
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--virtual-time-budget=3000", "--dump-dom", f"{page.as_uri()}#lang=zh&find=alert"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    shown = Tree(done.stdout)
    assert "在文本中查找" in shown.texts  # the script ran
    tags = [tag for tag, _ in shown.tags]
    assert not {"img", "svg", "iframe"} & set(tags)
    assert tags.count("script") == 2
    legend = html.unescape(done.stdout.partition('id="legend"')[2].partition("</ul>")[0])
    assert "<img src=x onerror=alert(1)>" in legend
    assert tags.count("mark") >= 3  # matches of the query
