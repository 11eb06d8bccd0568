"""Files of examples as people have them: guessed, read row by row, split, written."""

from __future__ import annotations

from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
)
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import Examples, read_examples
from bertsmith.labeled.read.reject import Reject, RowAccount
from bertsmith.labeled.read.write import write_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits

__all__ = [
    "Answers",
    "ChoiceIndex",
    "DataSpec",
    "Example",
    "Examples",
    "Label",
    "LabelSet",
    "Reject",
    "RowAccount",
    "ScoreTarget",
    "Splits",
    "Tagged",
    "Target",
    "guess_spec",
    "load_splits",
    "read_examples",
    "write_examples",
]
