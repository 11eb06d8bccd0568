"""Figures of spelling correction: the official ones of SIGHAN, and those that others print.

They differ a lot for the same output, so each has its own name: `correction_*` and `detection_*`
are those of the SIGHAN tool, `sentence_*` count every changed text, `character_*` single places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bertsmith.metrics.arrays import Floats, check_rows
from bertsmith.metrics.metric import Metric

Places = Mapping[int, str]
"""The character that belongs at each wrong place of a text."""

_WANTED, _SAID, _LOCATED, _RIGHT, _ALL_LOCATED, _ALL_RIGHT = range(6)


def _rows(truth: Sequence[Places], predicted: Sequence[Places], labels: Sequence[str]) -> Floats:
    """(N, 6): wrong places, changed ones, those in common, those changed right, all of them."""
    check_rows(truth, predicted)
    table = np.zeros((len(truth), 6))
    for number, (wanted, said) in enumerate(zip(truth, predicted, strict=True)):
        located = wanted.keys() & said.keys()
        right = sum(wanted[place] == said[place] for place in located)
        table[number] = (
            len(wanted),
            len(said),
            len(located),
            right,
            wanted.keys() == said.keys(),
            dict(wanted) == dict(said),
        )
    return table


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    wrong, changed = rows[:, _WANTED] > 0, rows[:, _SAID] > 0
    alarms = float((~wrong & changed).sum())
    figures: dict[str, float] = {}
    for name, column in (("correction", _ALL_RIGHT), ("detection", _ALL_LOCATED)):
        whole = rows[:, column] > 0
        hits = float((wrong & whole).sum())
        figures |= {
            f"{name}_{key}": value
            for key, value in _prf(hits, hits + alarms, float(wrong.sum())).items()
        }
        figures[f"{name}_accuracy"] = _share(float(whole.sum()), len(rows))
    figures["false_alarm_rate"] = _share(alarms, float((~wrong).sum()))
    right = rows[:, _ALL_RIGHT] > 0
    hits = float((wrong & right).sum())
    sentence = _prf(hits, float(changed.sum()), float(wrong.sum()))
    totals = rows.sum(axis=0)
    character = _prf(totals[_RIGHT], totals[_SAID], totals[_WANTED])
    return {
        "correction_f1": figures.pop("correction_f1"),
        **figures,
        **{f"sentence_{key}": value for key, value in sentence.items()},
        **{f"character_{key}": value for key, value in character.items()},
        "character_right_among_detected": _share(totals[_RIGHT], totals[_LOCATED]),
    }


def _prf(hits: float, said: float, wanted: float) -> dict[str, float]:
    precision, recall = _share(hits, said), _share(hits, wanted)
    return {
        "f1": _share(2 * precision * recall, precision + recall),
        "precision": precision,
        "recall": recall,
    }


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


CORRECTIONS = Metric("correction_f1", _rows, _figures)
"""N texts' wrong places and what was said of them -> the figures."""
