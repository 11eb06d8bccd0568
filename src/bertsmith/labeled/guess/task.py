"""Guesses the task from the cells of the label column."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.labeled.example import target_kind
from bertsmith.labeled.guess.columns import Profile, plain_name, profile
from bertsmith.labeled.guess.sample import SpecBuilder
from bertsmith.labeled.read.targets import as_number

SEPARATORS = ("|", ";", ", ", ",")
INFERENCE = {"entailment", "neutral", "contradiction"}
NO_LABEL = "-"  # what SNLI, MNLI and CMNLI write where the annotators did not agree
MANY_SCORES = 10
FEW_SCORES = 4
SCORES = """
    score similarity similarity_score relatedness relatedness_score sts sts_score gold_score
    sim_score
"""
SCORE_NAMES = tuple(SCORES.split())
PAIR_SCORES = (0.0, 5.0)  # the range of STS and of what was made after it


def guess_task(cells: Sequence[str], builder: SpecBuilder) -> None:
    """Decide the task from the cells of the one label column."""
    filled = [cell for cell in cells if cell]
    column = profile(filled)
    labels = set(filled)
    if NO_LABEL in labels and labels & INFERENCE:
        builder.put("no_label", (NO_LABEL,), "its annotators did not agree on these rows")
    if builder.get("task") is not None or not filled:
        if _many_stated(builder):
            _separator(filled, builder)
        return
    if why := _scores(column, builder):
        builder.put("task", "regress", f"{why}; --task classify takes them for classes")
    elif _separator(filled, builder):
        builder.put("task", "multilabel", "a cell holds several labels")
    else:
        shown = ", ".join(repr(label) for label in sorted(labels)[:5])
        more = ", ..." if len(labels) > 5 else ""
        builder.put("task", "classify", f"labels in the sample: {shown}{more}{_doubt(filled)}")


def _scores(column: Profile, builder: SpecBuilder) -> str | None:
    """Why the labels are numbers to predict; None if they are names of classes."""
    if not column.numeric:
        return None
    if column.score:
        return "the label is a number with decimals"
    if any("." in cell for cell in column.cells) and column.distinct > MANY_SCORES:
        return f"{column.distinct} numbers with decimals"
    name = str((builder.get("label") or ("",))[0])
    if plain_name(name) in SCORE_NAMES and column.distinct >= FEW_SCORES:
        return f"the column {name!r} holds {column.distinct} different numbers"
    low, high = PAIR_SCORES
    scores = {as_number(cell) for cell in column.cells}
    if len(builder.get("text") or ()) == 2 and low <= min(scores) and max(scores) <= high:
        least = FEW_SCORES if any("." in cell for cell in column.cells) else FEW_SCORES + 1
        if len(scores) >= least:
            return f"pairs of texts with {len(scores)} different numbers from 0 to 5: similarities"
    return None


def _separator(cells: Sequence[str], builder: SpecBuilder) -> bool:
    """Whether labels are joined in one cell: the parts repeat more than the cells do.

    Where the user declared that they are, what joins them is the first that parts any cell.
    """
    if builder.is_set("label_separator"):
        return True
    stated = _many_stated(builder)
    wholes = set(cells)
    for separator in SEPARATORS:
        joined = [cell for cell in cells if separator in cell]
        parts = {part for cell in wholes for part in cell.split(separator)}
        if not joined or "" in parts:
            continue
        if not stated and (_rare(joined, cells) or len(parts) >= len(wholes)):
            continue
        if all(len(part) <= 40 for part in parts) and not profile(joined).numeric:
            why = f"{len(parts)} labels make {len(wholes)} different cells"
            builder.put("label_separator", separator, why)
            return True
    return False


def _many_stated(builder: SpecBuilder) -> bool:
    """Whether it is decided that a row may have several labels."""
    kind = target_kind(builder.get("target"), builder.get("task"))
    return kind is not None and kind.many


def _doubt(cells: Sequence[str]) -> str:
    """How to say that labels are joined, where they look so but do not repeat enough to tell."""
    for separator in SEPARATORS[:2]:  # commas stand in the names of labels, too
        joined = [cell for cell in cells if separator in cell]
        if not _rare(joined, cells):
            return f"; if {joined[0]!r} is several: --label-separator '{separator}'"
    return ""


def _rare(joined: Sequence[str], cells: Sequence[str]) -> bool:
    return len(joined) * 10 < len(cells)
