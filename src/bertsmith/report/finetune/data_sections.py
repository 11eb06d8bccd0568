"""The data: truncation, text lengths, label counts, duplicates, leakage and odd labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import folded, heading, paragraph, subheading, table
from bertsmith.report.elements.values import as_dict, as_dicts, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, name_of, percent, plural, value_of

MOST_LABELS = 60
MOST_FINDINGS = 20
FINDINGS = {
    "leaks": "rows in two splits (leakage)",
    "duplicates": "duplicate rows within a split",
    "conflicts": "texts with conflicting labels",
    "typos": "labels that look like typos",
    "unseen": "labels without a training row",
}


def truncation_cost(proof: dict[str, Any]) -> list[Markup]:
    """Metrics of truncated and of whole rows."""
    truncation = part(proof, "truncation")
    if not truncation:
        return []
    sections = [subheading("Truncation")]
    if not as_float(truncation.get("rows_cut")) > 0:
        return [*sections, paragraph("No row was truncated.")]
    rows, tokens = (plural(truncation.get(f"{unit}s_cut"), unit) for unit in ("row", "token"))
    share, most = percent(truncation.get("share")), counted(truncation.get("most_tokens_cut"))
    words = f"{rows} truncated ({share}), {tokens} lost, at most {most} per row."
    sections.append(paragraph(words))
    cut, whole = part(truncation, "cut"), part(truncation, "whole")
    names = list(dict.fromkeys([*cut, *whole]))
    lines = [[name_of(n), value_of(n, cut.get(n)), value_of(n, whole.get(n))] for n in names]
    if whole:
        sections.append(table(["", "truncated rows", "whole rows"], lines))
        sections.append(paragraph("Long rows may also be harder for other reasons.", "dim"))
    else:
        sections.append(paragraph("Every row was truncated; there is nothing to compare with."))
    return sections


def length_section(record: dict[str, Any]) -> list[Markup]:
    """Tokens of the texts, and the share of rows that each limit would cut."""
    lengths = part(record, "lengths")
    splits = {name: as_dict(one) for name, one in part(lengths, "splits").items()}
    if not splits:
        return []
    limits = list(dict.fromkeys(limit for one in splits.values() for limit in part(one, "cut")))
    rows = [
        [
            name,
            *(counted(one.get(key)) for key in ("rows", "p50", "p95", "p99", "max")),
            *(percent(part(one, "cut").get(limit)) for limit in limits),
        ]
        for name, one in splits.items()
    ]
    # Long contexts are read in windows: nothing is truncated.
    what = "longer than" if lengths.get("windows") else "cut at"
    header = ["tokens", "rows", "median", "95th percentile", "99th percentile", "longest"]
    header += [f"{what} {limit}" for limit in limits]
    sections = [heading("Text lengths"), table(header, rows)]
    chosen = as_float(part(lengths, "chosen").get("max_length"))
    if math.isfinite(chosen):
        sections.append(paragraph(f"Maximum length of this model: {counted(chosen)} tokens."))
    return sections


def survey_section(record: dict[str, Any]) -> list[Markup]:
    """Labels by split, and problems of the data."""
    survey = part(record, "survey")
    if not survey:
        return []
    sections = [heading("Data"), *_label_counts(survey)]
    odd = False
    for key, what in FINDINGS.items():
        kind = part(survey, key)
        count = as_float(kind.get("count"))
        if not count > 0:
            continue
        odd = True
        exact = as_float(kind.get("exact"))
        how = f" ({counted(exact)} exactly equal)" if math.isfinite(exact) else ""
        first = as_dicts(kind.get("first"))[:MOST_FINDINGS]
        title = f"{counted(count)} {what}{how}"
        sections.append(folded(title, [table(["text or label", "where"], map(_finding, first))]))
    imbalance = part(survey, "imbalance")
    if imbalance:
        odd = True
        sections.append(paragraph(_imbalance_sentence(imbalance)))
    if not odd:
        sections.append(
            paragraph(
                "No duplicates, no leakage between splits, no conflicting or misspelled labels."
            )
        )
    return sections


def _label_counts(survey: dict[str, Any]) -> list[Markup]:
    counts = {split: as_dict(one) for split, one in part(survey, "labels").items() if as_dict(one)}
    if not counts:
        return []
    names = dict.fromkeys(name for one in counts.values() for name in one)
    rows = [[n, *(counted(one.get(n, 0)) for one in counts.values())] for n in names]
    sections = [table(["label", *counts], rows[:MOST_LABELS])]
    if len(rows) > MOST_LABELS:
        rest = len(rows) - MOST_LABELS
        sections.append(paragraph(f"{rest:,} more labels in proof.json.", "dim"))
    return sections


def _finding(one: dict[str, Any]) -> list[str]:
    what = str(one.get("text") or one.get("label") or "")
    if one.get("meant") is not None:
        what = f"{what} → {one['meant']}?"
    labels = as_list(one.get("labels"))
    if labels:
        what = f"{what} ({' / '.join(map(str, labels))})"
    keys: Iterable[str] = ("first", "second", "place", "meant_place")
    places = [_place(part(one, key)) for key in keys if part(one, key)]
    return [what, ", ".join(places)]


def _place(place: dict[str, Any]) -> str:
    return f"{PurePath(str(place.get('file', ''))).name}:{counted(place.get('line'))}"


def _imbalance_sentence(one: dict[str, Any]) -> str:
    return (
        f"Class imbalance: “{one.get('commonest')}” has {counted(one.get('commonest_rows'))} "
        f"training rows, “{one.get('rarest')}” {counted(one.get('rarest_rows'))}."
    )
