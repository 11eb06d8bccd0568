"""The page of a map: points of a plane with their texts and labels, drawn by one inline script.

The texts are data of the page: JSON without a character that could end its element. The script
puts them into the page as text only, and the page's policy allows this script and this style by
their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from bertsmith.report.elements.page import template_page, template_source, visible
from bertsmith.sentences.map.projection import Projection

MOST_LABELS = 12  # colors that are easy to distinguish
LONGEST = 320  # characters of a text on the page
_AROUND = 140  # characters on each side of a word
_STEPS = 99_999  # of a coordinate
_IN_MARKUP = {ord(one): f"\\u{ord(one):04x}" for one in "<>&'\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A text with its row in the file, its label, and the characters of the word it stands for."""

    text: str
    row: int
    label: str | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapView:
    """What a page shows: points, the same points by each method, and facts about them."""

    title: str
    points: Sequence[MapPoint]
    projections: Sequence[Projection]
    legend: str = ""
    """What the labels are: the name of a column; empty where there are none."""
    words: bool = False
    """Points are occurrences of words, not texts."""
    facts: dict[str, int | str] = field(default_factory=dict)
    """model, total (points before sampling), cut (texts), beyond (occurrences not read)."""


def map_page(view: MapView) -> str:
    """The whole page."""
    style, script = template_source("map.css"), template_source("map.js")
    return template_page(
        "map.html",
        {
            "title": view.title,
            "style": Markup(style),  # noqa: S704
            "script": Markup(script),  # noqa: S704
            "style_hash": _hash(style),
            "script_hash": _hash(script),
            "data": _json(_record(view)),
        },
    )


def shown_labels(points: Sequence[MapPoint]) -> tuple[list[str], int]:
    """The most frequent labels, by count and name, and how many others share one color."""
    counts = Counter(point.label for point in points if point.label is not None)
    order = sorted(counts, key=lambda name: (-counts[name], name))
    most = MOST_LABELS if len(order) <= MOST_LABELS else MOST_LABELS - 1
    return order[:most], len(order) - len(order[:most])


def _record(view: MapView) -> dict[str, object]:
    """The data of the script; labels are numbers, -1 is one of the others, -2 none."""
    named, others = shown_labels(view.points)
    number = {name: at for at, name in enumerate(named)}
    texts, spans = zip(*map(_shown, view.points), strict=True)
    return {
        "texts": texts,
        "spans": spans if view.words else None,
        "rows": [point.row for point in view.points],
        "labels": [
            -2 if point.label is None else number.get(point.label, -1) for point in view.points
        ],
        "names": [visible(" ".join(name.split())) for name in named],
        "others": others,
        "legend": visible(view.legend),
        "words": view.words,
        "maps": [_plane(one) for one in view.projections],
        "facts": {
            name: visible(value) if isinstance(value, str) else value
            for name, value in view.facts.items()
        },
    }


def _shown(point: MapPoint) -> tuple[str, tuple[int, int]]:
    """The text on one line, cut around its word or at its end, and where its word is."""
    text = point.text
    if point.span is None:
        short = " ".join(text[: 4 * LONGEST].split())
        cut = short[:LONGEST] + ("…" if len(short) > LONGEST or len(text) > 4 * LONGEST else "")
        return visible(cut), (0, 0)
    start, end = point.span
    first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before = ("…" if first else "") + _line(text[first:start])
    after = _line(text[end:last]) + ("…" if last < len(text) else "")
    before, word, after = (visible(one) for one in (before, _line(text[start:end]), after))
    # The script counts UTF-16 units, Python characters.
    return before + word + after, (_units(before), _units(word))


def _line(part: str) -> str:
    return "".join(" " if one.isspace() else one for one in part)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _plane(projection: Projection) -> dict[str, object]:
    """Coordinates as whole numbers of one scale for both axes, so that distances stay."""
    low, high = projection.points.min(axis=0), projection.points.max(axis=0)
    size = float((high - low).max()) or 1.0
    middle = (low + high) / 2
    placed = np.rint(((projection.points - middle) / size + 0.5) * _STEPS).astype(int)
    return {
        "method": projection.method,
        "x": placed[:, 0].tolist(),
        "y": (_STEPS - placed[:, 1]).tolist(),  # a screen counts downwards
        "steps": _STEPS,
        "explained": projection.explained,
    }


def _json(record: dict[str, object]) -> Markup:
    """JSON whose texts cannot end the element it stands in."""
    written = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(written.translate(_IN_MARKUP))  # noqa: S704


def _hash(content: str) -> Markup:
    """The hash by which a policy allows an inline element."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return Markup("sha256-" + base64.b64encode(digest).decode())  # noqa: S704
