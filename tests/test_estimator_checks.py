"""scikit-learn's estimator checks: as they are, and with their numbers written out as texts.

scikit-learn does not run its checks on estimators that read text: its data are tables of numbers.
So the second half gives them an estimator that validates a table, writes each row as words, and
then is the TextClassifier or the TextRegressor. What they say of sparse, complex or missing numbers
is then about that validation, not about the estimator. None is left out, but those that
scikit-learn does not give:

- sample weights: `fit` has no sample_weight, and so says TypeError to who gives one;
- several outputs, transformers, clusterers, outlier detectors: it is none of these;
- pandas and array-API input: skipped by scikit-learn itself where these are not installed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from tiny_finetuning import RECIPE
from tiny_models import shrunk
from tiny_tasks import SPECIAL, word_tokenizer

from bertsmith.api.estimators import TextClassifier, TextRegressor
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.kinds.labeled.recipe import PlanSettings

pytest.importorskip("sklearn", minversion="1.6")
from sklearn.utils.estimator_checks import (
    check_estimator,
    parametrize_with_checks,
)
from sklearn.utils.validation import check_is_fitted, validate_data

LONG = os.environ.get("BERTSMITH_LONG") == "1"
COLUMNS, STEPS = 12, 9
WORDS = [f"c{column}s{step}" for column in range(COLUMNS) for step in range(STEPS)]
QUICK = RECIPE.model_copy(
    update={
        "run": RunSettings(precision="fp32"),
        "plan": PlanSettings(epochs=3, batch=16),
    }
)


@pytest.fixture(scope="module", autouse=True)
def source(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A tiny model folder whose words are numbers of columns."""
    spec = shrunk("bert", vocab_size=len(SPECIAL) + len(WORDS), hidden=32, heads=2, rows=64)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    OnNumbers.source = str(tmp_path_factory.mktemp("numbers") / "model")
    save_model(model, word_tokenizer(WORDS), Path(OnNumbers.source))


def written(X: np.ndarray) -> list[str]:
    """Each row as words, one a column: which ninth of the normal distribution its number is in."""
    edges = [-1.22, -0.76, -0.43, -0.14, 0.14, 0.43, 0.76, 1.22]
    steps = np.digitize(np.asarray(X, dtype=float), edges)
    return [
        " ".join(f"c{column % COLUMNS}s{step}" for column, step in enumerate(row)) for row in steps
    ]


class OnNumbers:
    """Validates a table as scikit-learn's own estimators do, then writes it out."""

    source: str

    def _fit(self, texts: Any, targets: Any) -> Self:
        # Not as parameters: tests are named by them, alike in every process.
        kept = vars(self).copy()
        self.model, self.recipe = self.source, QUICK
        super()._fit(texts, targets)  # type: ignore[misc]
        self.model, self.recipe = kept["model"], kept["recipe"]
        return self

    def fit(self, X: Any, y: Any) -> Self:
        checked, labels = validate_data(self, X, y, multi_output=False)
        return super().fit(written(checked), labels)  # type: ignore[misc,no-any-return]

    def _predictions(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._predictions(written(validate_data(self, X, reset=False)))  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inputs = tags.input_tags
        inputs.two_d_array, inputs.one_d_array, inputs.string = True, False, False
        return tags


class NumberClassifier(OnNumbers, TextClassifier):
    pass


class NumberRegressor(OnNumbers, TextRegressor):
    pass


@pytest.mark.parametrize("kind", [TextClassifier, TextRegressor])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit:UserWarning")
def test_scikit_learn_accepts_the_estimator_as_it_is(kind: type) -> None:
    check_estimator(kind())


# Those that say most of an estimator that is not about tables; BERTSMITH_LONG=1 runs all of them.
ALWAYS = {
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_mixin_order",
    "check_estimators_unfitted",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_requires_y_none",
    "check_dict_unchanged",
    "check_fit2d_1sample",
    "check_estimators_pickle",
    "check_methods_subset_invariance",
}
MORE_EPOCHS = {"check_classifiers_train": 24, "check_regressors_train": 24}
"""These ask for a score, which weights drawn at random reach later than published ones."""


def name_of(check: Any) -> str:
    plain = check
    while hasattr(plain, "func") or hasattr(plain, "__wrapped__"):
        plain = plain.func if hasattr(plain, "func") else plain.__wrapped__
    return str(plain.__name__)


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit:UserWarning")
@parametrize_with_checks([NumberClassifier(), NumberRegressor()])
def test_the_estimator_passes_the_checks_on_texts(estimator: Any, check: Any) -> None:
    name = name_of(check)
    if not LONG and (name not in ALWAYS or isinstance(estimator, NumberRegressor)):
        pytest.skip("one of the checks that only the long form runs")
    check(estimator.set_params(epochs=MORE_EPOCHS.get(name)))
