"""Files of examples as people have them: guessed, read row by row, split, written."""

from __future__ import annotations

from bertsmith.data.examples.account import Account
from bertsmith.data.examples.example import (
    Answers,
    Choice,
    Example,
    Label,
    Labels,
    Score,
    Tagged,
    Target,
)
from bertsmith.data.examples.guess import guess
from bertsmith.data.examples.read import Examples, read_examples
from bertsmith.data.examples.reject import Reject
from bertsmith.data.examples.spec import DataSpec
from bertsmith.data.examples.split import Splits, load_splits
from bertsmith.data.examples.write import write_examples

__all__ = [
    "Account",
    "Answers",
    "Choice",
    "DataSpec",
    "Example",
    "Examples",
    "Label",
    "Labels",
    "Reject",
    "Score",
    "Splits",
    "Tagged",
    "Target",
    "guess",
    "load_splits",
    "read_examples",
    "write_examples",
]
