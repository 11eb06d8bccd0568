"""Linear bag-of-tokens term: counts as tf-idf is defined, and a head that learns from them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import ChoiceIndex, Example, Label
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.classify import classify_from
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.model.layers import FEWEST, LENGTH, HeadSettings, WideFeatures
from bertsmith.tasks.task import TaskOptions
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    PlanSettings,
    TextVectorSettings,
)
from bertsmith.training.kinds.labeled.record import head
from bertsmith.training.recipe import RatedOptimizer

TOKENIZER = word_tokenizer()
WORDS = len(SPECIAL) + len(TASK_WORDS)


def labeled(count: int, seed: int = 0) -> list[Example]:
    rng = random.Random(seed)
    texts = [rng.choices(TASK_WORDS, k=rng.randint(1, 30)) for _ in range(count)]
    texts[0][0] = texts[1][0] = "house"
    return [row(n, [" ".join(words)], Label("ab"[n % 2])) for n, words in enumerate(texts)]


def features_of(examples: list[Example], lengths: LengthSettings | None = None) -> list[Feature]:
    task = classify_from(labeled(2), TaskOptions(loss=CrossEntropySettings()))
    return task.features(examples, TOKENIZER, lengths or LengthSettings())


def counts(term: WideFeatures, features: list[Feature]) -> np.ndarray:
    """(E, V): what the weights are multiplied with."""
    batch = task_batch(features)
    with torch.no_grad():
        term.weight.copy_(torch.eye(WORDS))
        return term(batch, batch.owners, batch.examples).numpy()


def test_counts_are_those_of_tf_idf() -> None:
    train, new = labeled(40), labeled(15, seed=1)
    term = WideFeatures(WORDS, WORDS)
    term.learn_rarity(features_of(train))
    peer = TfidfVectorizer(sublinear_tf=True, min_df=FEWEST, token_pattern=r"\w+")
    peer.fit([example.texts[0] for example in train])
    wanted = np.zeros((len(new), WORDS))
    columns = [TOKENIZER.token_to_id(word) for word in peer.get_feature_names_out()]
    wanted[:, columns] = peer.transform([example.texts[0] for example in new]).toarray()
    assert np.allclose(counts(term, features_of(new)), LENGTH * wanted, atol=1e-5)


def test_rare_and_special_tokens_do_not_count() -> None:
    examples = [row(0, ["red bird red"]), row(1, ["bird tree"]), row(2, ["bird"])]
    term = WideFeatures(WORDS, WORDS)
    term.learn_rarity(features_of(examples))
    assert term.rarity.nonzero()[:, 0].tolist() == [TOKENIZER.token_to_id("bird")]
    unknown = counts(term, features_of([row(0, ["stone river"]), row(1, ["bird"])]))
    assert (unknown[0] == 0).all()
    assert np.isclose(unknown[1].sum(), LENGTH)


def test_windows_of_a_text_are_counted_together() -> None:
    rng = random.Random(2)
    texts = [" ".join(rng.choices(TASK_WORDS, k=24)) for _ in range(12)]  # three windows of 8
    examples = [row(number, [text]) for number, text in enumerate(texts)]
    term = WideFeatures(WORDS, WORDS)
    term.learn_rarity(features_of(examples))
    whole = counts(term, features_of(examples))
    windows = features_of(examples, LengthSettings(max_length=10, stride=8))
    assert len(windows) == 3 * len(examples)
    assert np.allclose(counts(term, windows), whole, atol=1e-5)


def with_wide(*, wide: bool) -> FinetuneRecipe:
    """A frozen encoder that has learned nothing, so that its vectors say little."""
    return RECIPE.model_copy(
        update={
            "encoder": EncoderSettings(frozen=True),
            "vector": TextVectorSettings(pooling="first"),
            "head": HeadSettings(dropout=0.0, wide=wide),
            "optimizer": RatedOptimizer(lr=1e-2),
            "plan": PlanSettings(epochs=10, batch=8),
        }
    )


def test_a_head_learns_what_the_vectors_do_not_say(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "source")
    accuracy = {}
    for wide in (True, False):
        out = tmp_path / f"wide-{wide}"
        done = finetune(tiny_job(source, out, recipe=with_wide(wide=wide)))
        assert done.dev_figures is not None
        accuracy[wide] = done.dev_figures["accuracy"]
        predictor = load_predictor(out)
        assert ("a linear term per token" in head(predictor.model)["reads"]) == wide
        dev = rows(60, seed=1)
        said = [one.value for one in predictor.predict([example.texts for example in dev])]
        right = [example.target == Label(str(one)) for example, one in zip(dev, said, strict=True)]
        assert np.mean(right) == accuracy[wide]
    assert accuracy[True] > 0.95
    assert accuracy[True] > accuracy[False] + 0.1


def test_choices_are_counted_one_by_one() -> None:
    choices = [row(0, ["red", "blue bird", "tree bird"], ChoiceIndex(1))]
    term = WideFeatures(WORDS, WORDS)
    features = Choose().features(choices, TOKENIZER, LengthSettings())
    term.rarity.fill_(1.0)
    batch = task_batch(features)
    with torch.no_grad():
        term.weight.copy_(torch.eye(WORDS))
        found = term(batch, torch.arange(2), 2)
    tree = TOKENIZER.token_to_id("tree")
    assert found[0, tree] == 0
    assert found[1, tree] > 0


@pytest.mark.parametrize("task", ["tag", "answer"])
def test_tasks_on_single_tokens_refuse_it(tmp_path: Path, task: str) -> None:
    recipe = RECIPE.model_copy(update={"head": HeadSettings(wide=True)})
    job = tiny_job(tiny_folder(tmp_path / "source"), tmp_path / "out", task, recipe=recipe)
    with pytest.raises(ConfigError, match=r"head\.wide"):
        finetune(job)
