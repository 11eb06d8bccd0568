"""Every shipped recipe of fine-tuning reads, fits its task, and says where it comes from."""

from __future__ import annotations

import random
import re

import pytest
from tiny_tasks import TASK_WORDS, row, word_tokenizer

from bertsmith.config import to_toml
from bertsmith.errors import ConfigError
from bertsmith.files.digest import fingerprint
from bertsmith.labeled import Answers, ChoiceIndex, Example, Label, LabelSet, ScoreTarget, Tagged
from bertsmith.tasks.kinds import task_from_data, task_kind
from bertsmith.tasks.task import TaskOptions
from bertsmith.training.kinds.labeled.recipe import (
    FINETUNE_RECIPES,
    FinetuneRecipe,
    default_recipe,
    load_finetune_recipe,
)
from bertsmith.training.recipe import About

TASKS = {
    "classify": ["cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "bbc", "imdb", "default",
                 "chnsenticorp", "lcqmc", "afqmc", "xnli-zh", "cmnli", "tnews", "iflytek", "csl",
                 "wnli", "cluewsc", "features"],
    "regress": ["stsb", "default"],
    "multilabel": ["default", "features"],
    "tag": ["conll2003", "wikiann", "cluener", "msra-ner", "default-tag"],
    "answer": ["squad", "squad2", "cmrc", "drcd", "default-answer"],
    "choose": ["swag", "c3", "default-choose"],
}  # fmt: skip
PAIRS = {"mrpc", "qqp", "mnli", "qnli", "rte", "wnli", "stsb", "lcqmc", "afqmc", "xnli-zh", "cmnli",
         "csl"}  # fmt: skip
NAMES = sorted({name for names in TASKS.values() for name in names})
CASES = [(task, name) for task, names in TASKS.items() for name in names]


def text(words: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(TASK_WORDS, k=words))


def examples(task: str, *, fields: int, words: int) -> list[Example]:
    """Rows of a task, each text of so many words."""
    found = []
    for number in range(4):
        texts = [text(words, 10 * number + field) for field in range(fields)]
        starts = [0, *(at + 1 for at, letter in enumerate(texts[0]) if letter == " ")]
        units = tuple((at, at + 3) for at in starts)
        target = {
            "classify": Label("ab"[number % 2]),
            "multilabel": LabelSet(("a", "b")[: number % 3]),
            "regress": ScoreTarget(float(number)),
            "tag": Tagged(units, ("B-X", *["O"] * (len(units) - 1))),
            "answer": Answers(((texts[-1][:3], 0),)),
            "choose": ChoiceIndex(number % 2),
        }[task]
        found.append(row(number, texts, target))
    return found


def test_the_shipped_recipes_are_those_promised() -> None:
    assert sorted(FINETUNE_RECIPES.shipped()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_survives_the_way_to_a_file_and_back(name, tmp_path) -> None:
    recipe = load_finetune_recipe(name)
    assert recipe.about.summary
    assert recipe.about.source
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(recipe), encoding="utf-8")
    assert load_finetune_recipe(path) == recipe
    assert fingerprint(load_finetune_recipe(str(path))) == fingerprint(recipe)


@pytest.mark.parametrize(("task", "name"), CASES)
def test_a_recipe_fits_the_rows_of_its_task(task, name) -> None:
    recipe = load_finetune_recipe(name)
    fields = {"answer": 2, "choose": 3}.get(task, 2 if name in PAIRS else 1)
    rows = examples(task, fields=fields, words=700)
    made = task_from_data(
        task_kind(task), rows, TaskOptions(loss=recipe.loss, settings=recipe.task)
    )
    features = made.features(rows, word_tokenizer(), recipe.length)
    assert max(map(len, features)) == recipe.length.max_length
    if task in ("tag", "answer"):  # windows over everything
        assert len(features) > len(rows)
        assert all(feature.encoding.total_cut == 0 or task == "answer" for feature in features)


@pytest.mark.parametrize(("task", "name"), CASES)
def test_the_figure_that_decides_is_one_of_the_task(task, name) -> None:
    wanted = load_finetune_recipe(name).best.figure
    if task == "classify":
        figures = task_kind(task).metric.score([0, 1, 1], [0, 1, 0], ("0", "1"))
        assert wanted is None or wanted in figures
    else:
        assert wanted is None
    expected = {"cola": "mcc", "mrpc": "f1", "qqp": "f1"}
    assert wanted == expected.get(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "default"])
def test_a_recipe_holds_nothing_but_what_differs_from_the_one_it_extends(name) -> None:
    tree = FINETUNE_RECIPES.find(name).tree
    assert re.fullmatch("default(-[a-z]+)?|features", tree["extends"])
    parent = load_finetune_recipe(tree["extends"]).model_dump(mode="json")
    for section, values in tree.items():
        if section in ("extends", "about") or name.startswith("default-"):
            continue
        same = {key for key, value in values.items() if parent[section][key] == value}
        assert same <= {"kind"}, f"{name}: {section}"


def test_recipes_of_published_data_sets_use_no_setting_of_our_own() -> None:
    """R-Drop, the bag of tokens and the bi-encoder are for those who ask for them."""
    for name in NAMES:
        recipe = load_finetune_recipe(name)
        assert recipe.regularization.r_drop == 0
        assert not recipe.head.wide
        assert recipe.encoder.pair == "cross-encoder"


def test_the_default_spells_out_what_no_recipe_would_do() -> None:
    default = load_finetune_recipe(None)
    assert default.model_copy(update={"about": About()}) == FinetuneRecipe()
    assert load_finetune_recipe("default") == default
    said = FINETUNE_RECIPES.text("default")
    for section, settings in FinetuneRecipe():
        if section in ("about", "task", "run", "auxiliary", "knowledge", "channel"):
            continue
        for name in type(settings).model_fields:
            assert name in said or (section, name) in {
                ("length", "strict"), ("encoder", "dropout"), ("encoder", "attention_dropout"),
            }, f"{section}.{name}"  # fmt: skip


def test_without_a_name_the_task_decides() -> None:
    assert [default_recipe(task) for task in ("classify", "regress", "multilabel", None)] == [
        "default"
    ] * 4
    for task in ("tag", "answer", "choose"):
        assert load_finetune_recipe(None, task=task) == load_finetune_recipe(f"default-{task}")
    assert load_finetune_recipe(None, ["length.max_length=64"], task="answer").plan.epochs == 2.0
    assert load_finetune_recipe("cola", task="answer") == load_finetune_recipe("cola")


def test_overrides_are_laid_over_a_recipe() -> None:
    recipe = load_finetune_recipe(
        "sst2", ["optimizer.lr=3e-5", "loss.kind=focal", "head.layers=[64]", "length.keep=tail"]
    )
    assert recipe.optimizer.lr == 3e-5
    assert recipe.loss.kind == "focal"
    assert recipe.head.layers == (64,)
    assert recipe.length.keep == "tail"
    assert recipe.plan == load_finetune_recipe("sst2").plan
    with pytest.raises(ConfigError, match=r"sst2 with plan.epoch=2: .*did you mean 'plan\.epochs'"):
        load_finetune_recipe("sst2", ["plan.epoch=2"])


def test_unknown_recipes_come_with_a_hint(tmp_path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'squad2'"):
        load_finetune_recipe("squa2")
    with pytest.raises(ConfigError, match=r"'bert' is one of `bertsmith pretrain`; .*cola"):
        load_finetune_recipe("bert")
    with pytest.raises(ConfigError, match="there is no recipe file"):
        load_finetune_recipe(tmp_path / "none.toml")


def test_a_file_of_the_users_may_extend_a_shipped_one(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "imdb"\n[plan]\nepochs = 1.5\n')
    (tmp_path / "yours.toml").write_text('extends = "mine.toml"\n[best]\npatience = 3\n')
    recipe = load_finetune_recipe(tmp_path / "yours.toml")
    assert (recipe.plan.epochs, recipe.best.patience) == (1.5, 3)
    assert (recipe.length.keep, recipe.length.head) == ("head+tail", 128)
