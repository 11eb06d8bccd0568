"""TextClassifier and TextRegressor: fine-tuning as scikit-learn's estimators spell it.

scikit-learn itself is not needed. Where it asks for something of its own, it has been imported.
"""

# ruff: noqa: N803 - callers may name the rows X, as everywhere in scikit-learn

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.config import validated
from bertsmith.errors import ArgumentError, UnfittedError
from bertsmith.labeled.example import Example, Label, Score, Target
from bertsmith.runtime.predictor import Predictor
from bertsmith.tasks.prediction import Prediction
from bertsmith.training.finetune.in_memory import fit_rows, predictor_of
from bertsmith.training.finetune.recipe import FinetuneRecipe, load_finetune_recipe

Texts = Iterable[Any]
"""Texts, or rows of several fields: lists, arrays, columns or frames of pandas."""


class TextEstimator:
    """What both estimators have in common."""

    _task: str
    _figure: str | None = None  # what chooses the best weights, if not the task's main figure

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        *,
        recipe: str | FinetuneRecipe | None = None,
        epochs: float | None = None,
        lr: float | None = None,
        batch: int | None = None,
        max_length: int | None = None,
        dev: float = 0.1,
        random_state: int | None = 0,
    ) -> None:
        """`recipe` by name, path or as an object; what else is given is laid over it.

        A share `dev` of the rows is held out of training to choose the best weights by.
        """
        self.model = model
        self.recipe = recipe
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.max_length = max_length
        self.dev = dev
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name."""
        for name, value in params.items():
            if name not in self._names():
                raise ArgumentError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: "
                    f"{self._names()!r}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        plain = {
            name: one.default for name, one in inspect.signature(type(self)).parameters.items()
        }
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(plain[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        """Settings and the files of the model, weights as safetensors; no live objects."""
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "files_" in state:
            self._predictor = predictor_of(state["files_"])

    def __sklearn_tags__(self) -> Any:
        tags = sys.modules["sklearn.utils"]  # who asks has imported it
        classifies = isinstance(self, TextClassifier)
        return tags.Tags(
            estimator_type="classifier" if classifies else "regressor",
            target_tags=tags.TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=tags.ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else tags.RegressorTags(),
            input_tags=tags.InputTags(one_d_array=True, two_d_array=False, string=True),
        )

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(inspect.signature(cls.__init__).parameters.keys() - {"self"})

    def _fit(self, texts: Sequence[tuple[str, ...]], targets: Sequence[Target]) -> Self:
        rows = [
            Example(source="X", line=at + 1, id=str(at), texts=fields, target=target)
            for at, (fields, target) in enumerate(zip(texts, targets, strict=True))
        ]
        recipe = self._recipe()
        self.files_ = fit_rows(self._task, rows, model=self.model, recipe=recipe, dev=self.dev)
        self._predictor = predictor_of(self.files_)
        return self

    def _recipe(self) -> FinetuneRecipe:
        given = self.recipe
        if not isinstance(given, FinetuneRecipe):
            given = load_finetune_recipe(given, [], task=self._task)
        changes: dict[str, dict[str, Any]] = {
            "plan": {"epochs": _float(self.epochs), "batch": self.batch},
            "optimizer": {"lr": _float(self.lr)},
            "length": {"max_length": self.max_length},
            "run": {"seed": self.random_state},
        }
        if self._figure is not None and given.best.figure is None:
            changes["best"] = {"figure": self._figure}
        tree = given.model_dump()
        for section, values in changes.items():
            tree[section] |= {name: value for name, value in values.items() if value is not None}
        return validated(FinetuneRecipe, tree, f"the settings of {self!r}")

    def _said(self, X: Texts) -> list[Prediction]:
        predictor: Predictor | None = getattr(self, "_predictor", None)
        if predictor is None:
            raise _not_fitted(type(self).__name__)
        return predictor.predict(rows_of(X))


class TextClassifier(TextEstimator):
    """One class for each text (or pair, or row of fields): fit, predict, predict_proba, score."""

    _task = "classify"

    def fit(self, X: Texts, y: Any) -> Self:
        """Learn the classes `y` of the texts `X`, from the model's own weights on every time."""
        texts, labels = _checked(X, y)
        if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
            raise ArgumentError(
                "Unknown label type: continuous. y holds numbers with fractions, which are no "
                "classes; TextRegressor learns numbers"
            )
        classes = np.unique(labels)
        names = [str(one) for one in classes.tolist()]
        if len(set(names)) < len(names):
            raise ArgumentError("two classes of y are written alike; give each a name of its own")
        if len(names) < 2:
            raise ArgumentError(f"y holds one class alone, {names[0]!r}; a classifier needs two")
        places = dict(zip(classes.tolist(), names, strict=True))
        self._fit(texts, [Label(places[one]) for one in labels.tolist()])
        self.classes_ = classes
        return self

    def predict(self, X: Texts) -> NDArray[Any]:
        """(N,) the most probable class of each text."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def predict_proba(self, X: Texts) -> NDArray[np.float64]:
        """(N, C) the probabilities of `classes_`."""
        said = self._said(X)
        names = [str(one) for one in self.classes_.tolist()]
        table = np.array([[one.probabilities[name] for name in names] for one in said])
        return table.reshape(len(said), len(names))

    def score(self, X: Texts, y: Any) -> float:
        """The share of texts whose class is right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))


class TextRegressor(TextEstimator):
    """A number for each text, pair or row of fields: fit, predict, score."""

    _task = "regress"
    _figure = "mse"  # what `score` is made of

    def fit(self, X: Texts, y: Any) -> Self:
        """Learn the numbers `y` of the texts `X`, from the model's own weights on every time."""
        texts, numbers = _checked(X, y)
        try:
            values = numbers.astype(np.float64)
        except (TypeError, ValueError) as fault:
            raise ArgumentError(f"y holds what is no number: {fault}") from fault
        if not np.isfinite(values).all():
            raise ArgumentError("y contains NaN or infinity; leave those rows out")
        if (values == values[0]).all():
            raise ArgumentError(
                f"y holds one number alone, {values[0]:g}, in {len(values)} sample(s); nothing can "
                "be learned"
            )
        return self._fit(texts, [Score(value) for value in values.tolist()])

    def predict(self, X: Texts) -> NDArray[np.float64]:
        """(N,) the number of each text."""
        return np.array([float(str(one.value)) for one in self._said(X)])

    def score(self, X: Texts, y: Any) -> float:
        """R squared: 1 less the squared errors over those of the mean."""
        truth = np.asarray(y, dtype=np.float64)
        spread = float(((truth - truth.mean()) ** 2).sum())
        missed = float(((truth - self.predict(X)) ** 2).sum())
        return 1.0 - missed / spread if spread else float(missed == 0.0)


def _float(value: float | None) -> float | None:
    """4 as 4.0: settings take numbers as they are written."""
    return float(value) if isinstance(value, int) else value


def rows_of(X: Texts) -> list[tuple[str, ...]]:
    """Texts, or rows of fields, as tuples of as many fields each."""
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ArgumentError(f"X must be a list of texts, not {type(X).__name__}; give [text]")
    given = X.to_numpy() if hasattr(X, "to_numpy") else X  # pandas: values, not names of columns
    found = [_fields(row, number) for number, row in enumerate(given)]
    if not found:
        raise ArgumentError("Found array with 0 sample(s) while a minimum of 1 is required.")
    odd = next((n for n, fields in enumerate(found) if len(fields) != len(found[0])), None)
    if odd is not None:
        raise ArgumentError(
            f"row {odd} of X has {len(found[odd])} fields, row 0 has {len(found[0])}"
        )
    return found


def _fields(row: Any, number: int) -> tuple[str, ...]:
    if isinstance(row, str):
        return (str(row),)
    many = isinstance(row, Sequence | np.ndarray) and len(row)
    if many and all(isinstance(field, str) for field in row):
        return tuple(str(field) for field in row)
    raise ArgumentError(
        f"row {number} of X is {type(row).__name__}, not a text or a row of texts; this estimator "
        "reads text, numbers must be written out as str"
    )


def _checked(X: Texts, y: Any) -> tuple[list[tuple[str, ...]], NDArray[Any]]:
    texts = rows_of(X)
    if y is None:
        raise ArgumentError("This estimator requires y to be passed, but the target y is None.")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ArgumentError(f"y should be a 1d array, got an array of shape {labels.shape}")
    if len(labels) != len(texts):
        raise ArgumentError(
            f"Found input variables with inconsistent numbers of samples: {len(texts)} texts in X "
            f"and {len(labels)} labels in y"
        )
    missing = labels.dtype.kind == "f" and not np.isfinite(labels).all()
    if missing or (labels.dtype.kind == "O" and any(one is None or one != one for one in labels)):
        raise ArgumentError("Input y contains NaN or infinity; leave rows without a label out")
    return texts, labels


def _not_fitted(name: str) -> Exception:
    """As scikit-learn spells it, if that is there to notice."""
    message = f"This {name} instance is not fitted yet. Call 'fit' before using this estimator."
    known = sys.modules.get("sklearn.exceptions")
    kind: type[Exception] = UnfittedError if known is None else known.NotFittedError
    return kind(message)
