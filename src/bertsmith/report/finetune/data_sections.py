"""The data: what was cut, how long texts are, what is odd about the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from bertsmith.report.elements.page import folded, heading, paragraph, subheading, table
from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, name_of, percent, plural, said

MOST_LABELS = 60
MOST_FINDINGS = 20
FINDINGS = {
    "leaks": "rows in two splits (leakage)",
    "duplicates": "duplicate rows within a split",
    "conflicts": "texts with conflicting labels",
    "typos": "labels that look like typos",
    "unseen": "labels without a training row",
}


def truncation_cost(proof: dict[str, Any]) -> list[str]:
    """Figures of rows that were cut beside those that were not."""
    told = part(proof, "truncation")
    if not told:
        return []
    sections = [subheading("Truncation")]
    if not as_float(told.get("rows_cut")) > 0:
        return [*sections, paragraph("No row was truncated.")]
    sections.append(
        paragraph(
            f"{plural(told.get('rows_cut'), 'row')} ({percent(told.get('share'))}) lost "
            f"{plural(told.get('tokens_cut'), 'token')}, one of them "
            f"{counted(told.get('most_tokens_cut'))}."
        )
    )
    cut, whole = part(told, "cut"), part(told, "whole")
    names = list(dict.fromkeys([*cut, *whole]))
    rows = [[name_of(n), said(n, cut.get(n)), said(n, whole.get(n))] for n in names]
    if whole:
        sections.append(table(["", "truncated rows", "whole rows"], rows))
        sections.append(
            paragraph("Long rows may be harder for other reasons: compare lengths.", "dim")
        )
    else:
        sections.append(paragraph("Every row was truncated; there is nothing to compare with."))
    return sections


def length_section(record: dict[str, Any]) -> list[str]:
    """Tokens of the texts, and the share of rows that each limit would cut."""
    told = part(record, "lengths")
    splits = {name: as_dict(one) for name, one in part(told, "splits").items()}
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
    # Questions are asked of every window of a long text: nothing of it is cut.
    what = "longer than" if told.get("windows") else "cut at"
    header = ["tokens", "rows", "median", "95th percentile", "99th percentile", "longest"]
    header += [f"{what} {limit}" for limit in limits]
    sections = [heading("Text lengths"), table(header, rows)]
    chosen = as_float(part(told, "chosen").get("max_length"))
    if math.isfinite(chosen):
        sections.append(paragraph(f"This model reads {counted(chosen)} tokens at a time."))
    return sections


def survey_section(record: dict[str, Any]) -> list[str]:
    """Labels by split, and what is odd."""
    told = part(record, "survey")
    if not told:
        return []
    sections = [heading("Data"), *_label_counts(told)]
    odd = False
    for key, what in FINDINGS.items():
        kind = part(told, key)
        count = as_float(kind.get("count"))
        if not count > 0:
            continue
        odd = True
        exact = as_float(kind.get("exact"))
        how = f" ({counted(exact)} exactly equal)" if math.isfinite(exact) else ""
        first = [as_dict(one) for one in as_list(kind.get("first"))][:MOST_FINDINGS]
        title = f"{counted(count)} {what}{how}"
        sections.append(folded(title, [table(["text or label", "where"], map(_finding, first))]))
    uneven = part(told, "imbalance")
    if uneven:
        odd = True
        sections.append(paragraph(_uneven(uneven)))
    if not odd:
        sections.append(
            paragraph("No repeated row, no row in two splits, no conflicting label, no odd label.")
        )
    return sections


def _label_counts(told: dict[str, Any]) -> list[str]:
    counts = {split: as_dict(one) for split, one in part(told, "labels").items() if as_dict(one)}
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


def _place(told: dict[str, Any]) -> str:
    return f"{PurePath(str(told.get('file', ''))).name}:{counted(told.get('line'))}"


def _uneven(told: dict[str, Any]) -> str:
    return (
        f"Uneven classes: “{told.get('commonest')}” has {counted(told.get('commonest_rows'))} "
        f"training rows, “{told.get('rarest')}” {counted(told.get('rarest_rows'))}."
    )
