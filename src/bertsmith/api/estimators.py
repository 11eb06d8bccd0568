"""TextClassifier, TextRegressor and TextTagger: fine-tuning as estimators of scikit-learn."""

# ruff: noqa: N803 - callers may name the rows X, as everywhere in scikit-learn

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError

from bertsmith.config import validated
from bertsmith.errors import ArgumentError, BertsmithError, check_type
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.folder_hashes import check_hashes, write_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.labeled.example import Example, Label, ScoreTarget, Tagged, Target
from bertsmith.runtime.predictor import Predictor, Row
from bertsmith.runtime.selection import Precision
from bertsmith.tasks.prediction import Prediction
from bertsmith.training.kinds.labeled.in_memory import files_of, fit_rows, load_files
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, load_finetune_recipe

Texts = Iterable[Any]
"""Texts, or rows of several fields: lists, arrays, columns or frames of pandas."""
ESTIMATOR = "estimator.json"  # in a saved folder, next to the files of the model


class UnfittedError(BertsmithError, NotFittedError):  # type: ignore[misc]
    """An estimator that predicts before it was fitted."""

    exit_code = 2


@dataclass(eq=False, repr=False)
class TextEstimator(BaseEstimator):  # type: ignore[misc]
    """The settings, training and folders that all estimators share.

    `recipe` is a name, a path or an object; the other settings override its values (without a
    `random_state`, its seed). A share `dev` of the rows is held out of training to choose the best
    weights by. `device` and `precision` are those of training and prediction; unset, training uses
    a GPU if there is one and the precision of the recipe, and prediction is exact on the CPU.
    """

    model: str = "all-MiniLM-L6-v2"
    _: KW_ONLY
    recipe: str | FinetuneRecipe | None = None
    epochs: float | None = None
    lr: float | None = None
    batch: int | None = None
    max_length: int | None = None
    dev: float = 0.1
    device: str | None = None
    precision: Precision | None = None
    random_state: int | None = 0

    _task: ClassVar[str]
    _figure: ClassVar[str | None] = None  # metric that chooses the weights, if not the main one

    def __getstate__(self) -> dict[str, Any]:
        """Settings and the files of the model, weights as safetensors; no live objects."""
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "files_" in state:
            self._predictor = self._loaded()

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a model folder for `load`, `bertsmith.load` and other libraries."""
        self._fitted()
        check_type("path", path, str, Path)
        settings = self.get_params()
        if isinstance(self.recipe, FinetuneRecipe):
            settings["recipe"] = self.recipe.model_dump(mode="json")
        content = json.dumps({"settings": settings, **self._state()}, indent=2, ensure_ascii=False)
        size = sum(map(len, self.files_.values()))
        with staged_folder(Path(path), needed=size, overwrite=overwrite) as folder:
            for name, part in self.files_.items():
                write_file(folder / name, part)
            write_file(folder / ESTIMATOR, content.encode())
            write_hashes(folder)

    @classmethod
    def load(
        cls, path: str | Path, *, device: str | None = None, precision: Precision | None = None
    ) -> Self:
        """The estimator of a folder that `save` wrote, or of any fine-tuned for the same task."""
        check_type("path", path, str, Path)
        folder = Folder.at(Path(path))
        check_hashes(folder)
        stored = folder.json_object(ESTIMATOR) if folder.has(ESTIMATOR) else {}
        settings = dict(stored.get("settings", {}))
        if isinstance(settings.get("recipe"), dict):
            where = f"{folder.path / ESTIMATOR}, recipe"
            settings["recipe"] = validated(FinetuneRecipe, settings["recipe"], where)
        made: Self = cls().set_params(**settings)
        made.device, made.precision = device or made.device, precision or made.precision
        made.files_ = files_of(folder)
        made._predictor = made._loaded()
        if made._predictor.task.name != cls._task:
            raise ArgumentError(
                f"{folder.path} was fine-tuned to {made._predictor.task.name}, a {cls.__name__} is "
                f"for {cls._task}"
            )
        made._restore(stored)
        return made

    def _state(self) -> dict[str, Any]:
        """What `fit` learned in addition to the model, as JSON."""
        return {}

    def _restore(self, stored: dict[str, Any]) -> None:
        """Restore what `_state` returned; empty for a folder that `save` did not write."""

    def _loaded(self) -> Predictor:
        return load_files(
            self.files_, device=self.device or "cpu", precision=self.precision or "fp32"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = True
        return tags

    def _fit(self, texts: Sequence[tuple[str, ...]], targets: Sequence[Target]) -> Self:
        rows = [
            Example(source="X", line=at + 1, id=str(at), texts=fields, target=target)
            for at, (fields, target) in enumerate(zip(texts, targets, strict=True))
        ]
        self.files_ = fit_rows(
            self._task,
            rows,
            model=self.model,
            recipe=self._recipe(),
            dev=self.dev,
            device=self.device,
        )
        self._predictor = self._loaded()
        return self

    def _recipe(self) -> FinetuneRecipe:
        given = self.recipe
        if not isinstance(given, FinetuneRecipe):
            given = load_finetune_recipe(given, [], task=self._task)
        changes: dict[str, dict[str, Any]] = {
            "plan": {"epochs": _float(self.epochs), "batch": self.batch},
            "optimizer": {"lr": _float(self.lr)},
            "length": {"max_length": self.max_length},
            "run": {"seed": self.random_state, "precision": self.precision},
        }
        if self._figure is not None and given.best.figure is None:
            changes["best"] = {"figure": self._figure}
        tree = given.model_dump()
        for section, values in changes.items():
            tree[section] |= {name: value for name, value in values.items() if value is not None}
        return validated(FinetuneRecipe, tree, f"the settings of {self!r}")

    def _predictions(self, X: Texts) -> list[Prediction]:
        return self._fitted().predict(self._rows(X))

    def _rows(self, X: Texts) -> Sequence[Row]:
        return rows_of(X)

    def _fitted(self) -> Predictor:
        predictor: Predictor | None = getattr(self, "_predictor", None)
        if predictor is None:
            raise UnfittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' before using "
                "this estimator."
            )
        return predictor


class TextClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
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
            raise ArgumentError("two classes of y have the same name as text; give each its own")
        if len(names) < 2:
            raise ArgumentError(f"y holds one class only, {names[0]!r}; a classifier needs two")
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
        predictions = self._predictions(X)
        names = [str(one) for one in self.classes_.tolist()]
        table = np.array([[one.probabilities[name] for name in names] for one in predictions])
        return table.reshape(len(predictions), len(names))

    def _state(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore(self, stored: dict[str, Any]) -> None:
        names = stored.get("classes", self._fitted().task.labels)
        self.classes_ = np.array(names, dtype=stored.get("dtype"))


class TextRegressor(RegressorMixin, TextEstimator):  # type: ignore[misc]
    """A number for each text, pair or row of fields: fit, predict, score."""

    _task = "regress"
    _figure = "mse"  # which `score` is computed from

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
                f"y holds one number only, {values[0]:g}, in {len(values)} sample(s); nothing can "
                "be learned"
            )
        return self._fit(texts, [ScoreTarget(value) for value in values.tolist()])

    def predict(self, X: Texts) -> NDArray[np.float64]:
        """(N,) the number of each text."""
        return np.array([float(str(one.value)) for one in self._predictions(X)])


class TextTagger(TextEstimator):
    """A tag for each word of word sequences, or each character of texts: fit, predict, score.

    Tags are BIO ("B-PER", "I-PER", "O") or plain, such as parts of speech.
    """

    _task = "tag"

    def fit(self, X: Texts, y: Iterable[Sequence[str]]) -> Self:
        """Learn the tags `y`, a sequence per row of `X`, a tag per word or character."""
        rows = self._rows(X)
        tags = [tuple(str(tag) for tag in row) for row in y]
        if len(tags) != len(rows):
            raise ArgumentError(f"X has {len(rows)} rows and y has {len(tags)}")
        for number, (row, own) in enumerate(zip(rows, tags, strict=True)):
            if len(row.units) != len(own):
                raise ArgumentError(
                    f"row {number} of X has {len(row.units)} words or characters, {len(own)} tags"
                )
        targets = [Tagged(row.units, own) for row, own in zip(rows, tags, strict=True)]
        return self._fit([row.texts for row in rows], targets)

    def predict(self, X: Texts) -> list[list[str]]:
        """The tags of each row."""
        return [list(one.tags) for one in self._predictions(X)]

    def score(self, X: Texts, y: Iterable[Sequence[str]]) -> float:
        """The share of right tags."""
        both = zip(self.predict(X), y, strict=True)
        right = [mine == str(tag) for row, own in both for mine, tag in zip(row, own, strict=True)]
        return float(np.mean(right))

    def _rows(self, X: Texts) -> list[Example]:
        if isinstance(X, str) or not isinstance(X, Iterable):
            raise ArgumentError(f"X must be a list of rows, not {type(X).__name__}; give [row]")
        return [_tag_row(row, number) for number, row in enumerate(X)]


def _tag_row(row: Any, number: int) -> Example:
    """A text with its characters as units, or words joined by spaces with themselves as units."""
    words = _fields(row, number)
    joint = "" if isinstance(row, str) else " "
    parts = list(row) if isinstance(row, str) else words
    starts = np.cumsum([0, *(len(part) + len(joint) for part in parts)]).tolist()
    units = tuple((start, start + len(part)) for start, part in zip(starts, parts, strict=False))
    text = joint.join(parts)
    return Example(source="X", line=number + 1, id=str(number), texts=(text,), units=units)


def _float(value: float | None) -> float | None:
    """4 as 4.0: settings take numbers as they are written."""
    return float(value) if isinstance(value, int) else value


def rows_of(X: Texts) -> list[tuple[str, ...]]:
    """Texts, or rows of fields, as tuples of as many fields each."""
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ArgumentError(f"X must be a list of texts, not {type(X).__name__}; give [text]")
    given = X.to_numpy() if hasattr(X, "to_numpy") else X  # pandas: values, not names of columns
    rows = [_fields(row, number) for number, row in enumerate(given)]
    if not rows:
        raise ArgumentError("Found array with 0 sample(s) while a minimum of 1 is required.")
    odd = next((n for n, fields in enumerate(rows) if len(fields) != len(rows[0])), None)
    if odd is not None:
        raise ArgumentError(f"row {odd} of X has {len(rows[odd])} fields, row 0 has {len(rows[0])}")
    return rows


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
