"""A classification probe: logistic regression on vectors of texts, next to a bag of words."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import InputFileError
from bertsmith.labeled.example import Example, Label
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import load_splits
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.metrics.significance import bootstrap
from bertsmith.studies.road.material import RoadMaterial

Floats = NDArray[np.float64]
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)  # of C
FOLDS = 5
MOST_ITERATIONS = 300
SPLIT = "labels.split.json"

Text = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadProbe:
    """Words and labels of texts to train and to test on."""

    train: tuple[Text, ...]
    train_labels: tuple[str, ...]
    test: tuple[Text, ...]
    test_labels: tuple[str, ...]
    shortened: int  # texts that were longer than the words that are read

    def measure(self, features: Callable[[Sequence[Text]], Any]) -> dict[str, Any]:
        """Accuracy on the test rows with its interval; `features` gives (N, D) of texts."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        folds = min(FOLDS, *Counter(self.train_labels).values())
        rows = features(self.train)
        dense = isinstance(rows, np.ndarray)
        model = make_pipeline(
            StandardScaler(with_mean=dense, with_std=dense),
            LogisticRegression(max_iter=MOST_ITERATIONS),
        )
        search = GridSearchCV(
            model,
            {"logisticregression__C": list(GRID)},
            cv=StratifiedKFold(folds, shuffle=True, random_state=0),
        )
        with warnings.catch_warnings():  # the largest C of the grid may end before its minimum
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(rows, np.array(self.train_labels))
        right = np.asarray(search.predict(features(self.test)) == np.array(self.test_labels))
        interval = bootstrap(lambda rows: float(right[rows].mean()), len(right))
        return {
            "value": float(right.mean()),
            "low": interval.low,
            "high": interval.high,
            "c": float(search.best_params_["logisticregression__C"]),
        }

    def bag_of_words(self) -> dict[str, Any]:
        """The same regression on which words a text holds."""
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(analyzer=lambda text: text, binary=True, min_df=2)
        try:
            counter.fit(self.train)
        except ValueError:  # no word stands in two texts
            counter = CountVectorizer(analyzer=lambda text: text, binary=True).fit(self.train)
        return self.measure(counter.transform)


def read_probe(path: Path, material: RoadMaterial) -> RoadProbe:
    """Rows of a labeled file, the same ones for every model."""
    splits = load_splits(path, DataSpec(), saved=material.folder / SPLIT)
    if not all(isinstance(row.target, Label) for row in splits.train):
        task = splits.specs["train"].task
        raise InputFileError(
            f"{path}: the probe of a road classifies texts, and this file is for "
            f"{task or 'no task'}; give a file with texts and one label each"
        )
    most = material.request.sizes.rows
    train = some_rows(splits.train, most)
    test = some_rows(splits.test or splits.dev, most)
    labels = Counter(map(_label, train))
    if len(labels) < 2 or min(labels.values()) < 2 or not test:
        raise InputFileError(
            f"{path}: {len(train)} rows of {len(labels)} labels are too few for a probe; give two "
            "labels or more, each at least twice"
        )
    longest = material.request.sizes.text_words

    def words(rows: Sequence[Example]) -> list[Text]:
        return material.split([" ".join(row.texts) for row in rows])

    train_words, test_words = words(train), words(test)
    return RoadProbe(
        train=tuple(one[:longest] for one in train_words),
        train_labels=tuple(map(_label, train)),
        test=tuple(one[:longest] for one in test_words),
        test_labels=tuple(map(_label, test)),
        shortened=sum(len(one) > longest for one in (*train_words, *test_words)),
    )


def _label(row: Example) -> str:
    return row.target.name if isinstance(row.target, Label) else ""
