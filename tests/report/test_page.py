"""Pages of a report: nothing from data becomes markup, nothing is fetched, all is seen."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from html_tree import PAYLOADS, Tree
from jinja2 import UndefinedError
from markupsafe import Markup

from bertsmith import report
from bertsmith.report.elements.charts import Curve, Point, chart, histogram, square, thinned, ticks
from bertsmith.report.elements.page import (
    element,
    facts,
    folded,
    heading,
    page,
    paragraph,
    preformatted,
    subheading,
    table,
)


def everything(word: str) -> str:
    """A page that shows a word in every place data can go."""
    return page(
        word,
        [
            heading(word),
            facts([(word, word)]),
            table([word, word], [[word, word]]),
            preformatted(word),
            subheading(word),
            paragraph(word),
            folded(word, [paragraph(word, "dim")]),
            square([Point(0.1, 0.2, words=word)], low=0.0, high=1.0, names=(word, word)),
            histogram([(0.0, 0.5, 3.0)], x_name=word, low=0.0, high=1.0),
            chart([Curve(name=word, points=((0, 1), (1, 2)))], x_name=word),
            chart([Curve(name=word, points=((0, 1),), dots=True)], x_name=word),
        ],
    )


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_changes_the_tree(payload) -> None:
    benign = Tree(everything("a" * 10))
    assert Tree(everything(payload)).tags == benign.tags


@pytest.mark.parametrize("payload", PAYLOADS)
def test_unseen_characters_are_spelled_out(payload) -> None:
    shown = Markup(heading(payload)).striptags()
    assert shown.isprintable()
    shown.encode("utf-8")
    assert ("⟨U+202E⟩" in shown) == ("\u202e" in payload)
    assert ("⟨U+200B⟩" in shown) == ("\u200b" in payload)


def test_a_page_forbids_scripts_and_fetches_nothing() -> None:
    whole = everything("x")
    assert "default-src 'none'" in whole
    tree = Tree(whole)
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in tree.tags}
    assert not any("://" in value or value.startswith("//") for value in tree.values)
    assert "url(" not in whole
    assert "@import" not in whole


def test_curves_are_drawn_inside_the_frame_and_odd_points_are_left_out() -> None:
    drawn = chart(
        [Curve(name="loss", points=((0, 5.0), (1, math.nan), (2, math.inf), (3, 2.0)))],
        x_name="step",
    )
    assert drawn.count("polyline") == 1
    assert "nan" not in drawn
    assert "inf" not in drawn
    points = drawn.partition('points="')[2].partition('"')[0].split()
    assert len(points) == 2
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= 880
        assert 0 <= y <= 300


@pytest.mark.parametrize(
    "points", [(), ((1, math.nan),), ((3, 3.0),), ((0, 0.0), (0, 0.0)), ((0, 1e-30), (1, 2e-30))]
)
def test_any_curve_can_be_drawn(points) -> None:
    assert "nan" not in chart([Curve(name="odd", points=points)], x_name="step")


def test_a_long_curve_stays_small_and_keeps_its_end() -> None:
    points = tuple((float(step), 1 / (step + 1)) for step in range(200_000))
    kept = thinned(points)
    assert len(kept) <= 802
    assert kept[-1] == points[-1]
    assert len(chart([Curve(name="loss", points=points)], x_name="step")) < 50_000


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert ticks(5, 5) == [5]
    for low, high in ((0.03, 0.9), (-7, 12_345), (1e-9, 3e-9)):
        found = ticks(low, high)
        assert 2 <= len(found) <= 8
        assert all(low - 1e-12 <= tick <= high + (high - low) * 1e-6 for tick in found)


def test_line_breaks_stay_and_inkless_letters_are_spelled_out() -> None:
    assert preformatted("one\r\ntwo\n<three>") == "<pre>one\ntwo\n&lt;three&gt;</pre>"
    assert heading("\u3164x\u2800") == "<h2>⟨U+3164⟩x⟨U+2800⟩</h2>"
    assert heading("a\u3000b\u00a0c") == "<h2>a\u3000b\u00a0c</h2>"


def test_only_marked_html_is_html_and_a_missing_value_is_an_error() -> None:
    assert page("x", [Markup("<b>finished</b>")]).count("<b>") == 1
    assert page("x", ["<b>data</b>"]).count("<b>") == 0
    with pytest.raises(UndefinedError, match="place"):
        element("elements", "card", [], "true", "predicted", "")


def test_every_printed_value_passes_through_the_escape() -> None:
    """Templates that escape by themselves would bypass the spelled-out characters."""
    templates = Path(report.__file__).parent / "templates"
    words = "".join(path.read_text(encoding="utf-8") for path in templates.glob("*.html"))
    assert "macro table" in words
    assert not re.findall(r"\|\s*(safe|e|escape|join|forceescape)\b|autoescape|~", words)


def test_points_and_bars_are_drawn_where_they_belong() -> None:
    drawn = square(
        [Point(0.0, 0.0), Point(1.0, 1.0), Point(math.nan, 0.5)],
        low=0.0,
        high=1.0,
        names=("x", "y"),
    )
    tags = Tree(drawn)
    assert sum(tag == "circle" for tag, _ in tags.tags) == 2
    assert 'cx="52.0" cy="364.0"' in drawn  # the lower left corner
    assert 'cx="386.0" cy="12.0"' in drawn
    bars = histogram([(0, 1, 10), (1, 2, 5), (2, 3, 0)], x_name="x", low=0, high=4)
    frame, *heights = [float(part.partition('"')[0]) for part in bars.split('height="')[1:]]
    assert heights == [frame, frame / 2, 0.0]
    for nothing in (
        square([], low=0.0, high=1.0, names=("x", "y")),
        square([Point(1, 1)], low=1.0, high=1.0, names=("x", "y")),
        histogram([], x_name="x", low=0, high=1),
        histogram([(0, 1, 0)], x_name="x", low=0, high=1),
    ):
        assert "nothing was recorded" in nothing
