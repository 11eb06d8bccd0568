"""Every shipped recipe reads, builds, and says what it cannot do."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest
import torch
from command_line import run
from toy_corpus import needed_settings, short_recipe, toy_corpus

from bertsmith.config import to_toml
from bertsmith.corpus.shards import open_corpus
from bertsmith.errors import ConfigError
from bertsmith.files.digest import fingerprint
from bertsmith.models.positions import FunctionalRelative
from bertsmith.objectives.electra import narrowed
from bertsmith.objectives.source_target import GAIN
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.recipe import (
    PRETRAIN_RECIPES,
    SIZES,
    ModelSettings,
    load_recipe,
    spec_of,
)
from bertsmith.training.pretrain.workload import PretrainWorkload

NAMES = [
    "albert", "bart", "bert", "bert-wwm", "bert-wwm-zh", "electra", "ernie", "ernie2", "fast",
    "gpt", "macbert", "mass", "nezha", "roberta", "spanbert", "unilm", "wklm", "xlnet",
]  # fmt: skip
FITTING = {  # the toy corpus has small letters, no markers, and documents of a hundred tokens
    "ernie2": (
        "input.max_length=48",
        "program.objectives.capital=0",
        "program.objectives.relation=0",
    )
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return open_corpus(toy_corpus(tmp_path_factory.mktemp("corpus")))


def test_the_shipped_recipes_are_those_promised() -> None:
    assert sorted(PRETRAIN_RECIPES.shipped()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_survives_the_way_to_a_file_and_back(name, tmp_path) -> None:
    recipe = load_recipe(name)
    assert recipe.about.summary
    assert recipe.about.source
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe
    assert fingerprint(load_recipe(path)) == fingerprint(recipe)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_builds_and_makes_batches_that_learn(name, corpus) -> None:
    recipe = short_recipe(name, *FITTING.get(name, ()), *needed_settings(name))
    work = PretrainWorkload(recipe, corpus)
    module = build_module(recipe, corpus, work.program)
    batches = work.micro_batches(0, 0.8 if name == "ernie2" else 0.0)  # all tasks have begun
    read = 2 if module.model.decoder is not None else 1  # the decoder reads the text once more
    assert sum(work.tokens(batch) for batch in batches) <= 1024 * read
    parts = set()
    for batch in batches if name == "ernie2" else batches[:1]:  # a batch is of one task there
        losses, _ = work.loss(module, batch)
        parts |= set(losses)
        for part, loss in losses.items():
            assert loss.count == work.counts(batch)[part]
        sum(work.weights[part] * loss.sum for part, loss in losses.items()).backward()
    assert parts == set(work.weights) - {GAIN}  # which is measured in evaluation
    silent = [n for n, p in module.named_parameters() if p.grad is None]
    assert not silent


def test_unknown_recipes_and_settings_come_with_a_hint(tmp_path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'spanbert'"):
        load_recipe("spanbrt")
    with pytest.raises(ConfigError, match="there is no recipe file"):
        load_recipe(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"'optimizer\.lrr'; did you mean 'optimizer\.lr'"):
        load_recipe("bert", ["optimizer.lrr=1"])
    with pytest.raises(ConfigError, match="did you mean 'whole_word'"):
        load_recipe("bert", ["program.mask.grouping=whole_words"])
    with pytest.raises(ConfigError, match="did you mean 'roberta'"):
        load_recipe("bert", ["model.variant=robert"])
    with pytest.raises(ConfigError, match=r"did you mean 'program\.objectives\.mlm'"):
        load_recipe("bert", ["program.objectives.mlmm=1"])


@pytest.mark.parametrize(
    ("name", "override", "said"),
    [
        ("bert", "program.objectives.sop=1", "different ways"),
        ("bert", "input.kind=full_sentences", "needs pairs"),
        ("bert", "input.pair=next_sentence", None),
        ("bert", "input.pair=sentence_order", "leave input.pair out"),
        ("bert", "program.kind=electr", "did you mean 'electra'"),
        ("electra", "program.rtd=0", "greater than 0"),
        ("roberta", "program.objectives.mlm=0", "at least one objective"),
        ("fast", "stages=[{after=0.5, max_length=64}, {after=0.4, max_length=128}]", "one after"),
        ("bert", "schedule={kind='linear', steps=5, budget='3m'}", "either steps or budget"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(name, override, said) -> None:
    if said is None:
        assert load_recipe(name, [override]).inputs[0].pair == "next_sentence"
        return
    with pytest.raises(ConfigError, match=said):
        load_recipe(name, [override])


def test_an_override_of_steps_takes_the_place_of_a_budget_and_back() -> None:
    assert load_recipe("fast").schedule.budget == 3600.0
    changed = load_recipe("fast", ["schedule.steps=7"]).schedule
    assert (changed.steps, changed.budget) == (7, None)
    changed = load_recipe("bert", ['schedule.budget="20m"', "batch.sequences=32"])
    assert (changed.schedule.steps, changed.schedule.budget) == (None, 1200.0)
    assert (changed.batch.sequences, changed.batch.tokens) == (32, None)


def test_a_weight_of_zero_leaves_an_objective_out() -> None:
    recipe = load_recipe("bert", ["program.objectives.nsp=0"])
    assert [one.name for one in recipe.program.objectives.chosen] == ["mlm"]
    assert recipe.inputs[0].pair is None
    assert recipe.input.kind == "segment_pair"


def test_a_file_of_the_users_may_extend_a_shipped_one(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "spanbert"\n[program.mask]\nrate = 0.2\n')
    (tmp_path / "yours.toml").write_text('extends = "mine.toml"\n[optimizer]\nname = "muon"\n')
    recipe = load_recipe(tmp_path / "yours.toml")
    assert recipe.program.mask.rate == 0.2
    assert recipe.optimizer.name == "muon"
    assert [(one.name, one.weight) for one in recipe.program.objectives.chosen] == [
        ("mlm", 1.0),
        ("sbo", 1.0),
    ]


def test_an_objective_may_have_settings_of_its_own() -> None:
    recipe = load_recipe("spanbert", ["program.objectives.sbo={weight=0.5, places=7}"])
    boundary = recipe.program.objectives.sbo
    assert (boundary.weight, boundary.places) == (0.5, 7)
    with pytest.raises(ConfigError, match="place"):
        load_recipe("spanbert", ["program.objectives.sbo={weight=0.5, place=7}"])


def test_stages_begin_at_their_share() -> None:
    recipe = load_recipe("fast")
    assert [recipe.stage_at(share) for share in (0, 0.69, 0.7, 0.9, 1.0)] == [0, 0, 1, 2, 2]
    assert [inputs.max_length for inputs in recipe.inputs] == [128, 256, 512]


@pytest.mark.parametrize("variant", ["bert", "roberta", "albert", "electra", "nezha"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_variant_has_every_size(variant, size, corpus) -> None:
    spec = spec_of(ModelSettings(variant=variant, size=size, vocab_multiple=64), corpus.tokenizer())
    assert spec.vocab_size % 64 == 0
    assert spec.vocab_size >= corpus.vocab_size
    if (variant, size) != ("electra", "small"):
        assert (spec.layers, spec.hidden) == SIZES[size]
    assert spec.feed_forward == 4 * spec.hidden
    assert (spec.embedding == 128) == (
        variant == "albert" or spec.hidden == 128 or (size == "small" and variant == "electra")
    )
    assert isinstance(spec.positions, FunctionalRelative) == (variant == "nezha")
    assert spec.attention_dropout == 0.0


def test_a_generator_is_narrow_but_shares_the_embedding(corpus) -> None:
    spec = spec_of(ModelSettings(variant="electra", size="small"), corpus.tokenizer())
    small = narrowed(spec, 0.25)
    assert (small.hidden, small.heads, small.feed_forward, small.layers) == (64, 1, 256, 12)
    assert dataclasses.replace(small, hidden=spec.hidden, heads=spec.heads,
                               feed_forward=spec.feed_forward) == spec  # fmt: skip


def test_texts_longer_than_the_positions_are_refused(corpus) -> None:
    recipe = short_recipe("bert", "model.positions=256")
    with pytest.raises(ConfigError, match="256 positions"):
        build_module(recipe, corpus, PretrainWorkload(recipe, corpus).program)


def test_the_same_seed_builds_the_same_model(corpus) -> None:
    recipe = short_recipe("spanbert")
    program = PretrainWorkload(recipe, corpus).program
    torch.manual_seed(1)
    one = build_module(recipe, corpus, program).state_dict()
    torch.manual_seed(2)
    two = build_module(recipe, corpus, program).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_shipped_files_are_plain_toml_with_comments_to_learn_from() -> None:
    for name, layer in PRETRAIN_RECIPES.shipped().items():
        text = PRETRAIN_RECIPES.text(name)
        assert text.startswith("# ")
        assert "As published" in text or name == "fast"
        assert PRETRAIN_RECIPES.find(layer.place) == layer


def test_the_command_lists_and_prints(capsys) -> None:
    from bertsmith.sentences.train.recipe import SENTENCE_RECIPES
    from bertsmith.studies.ablation.variations import ABLATIONS
    from bertsmith.training.kinds.labeled.recipe import FINETUNE_RECIPES
    from bertsmith.training.kinds.spelling.recipe import CORRECT_RECIPES
    from bertsmith.training.kinds.write.recipe import WRITE_RECIPES

    assert run("recipes") == 0
    lines = capsys.readouterr().out.splitlines()
    kinds = "\n".join(lines).split("\n\n")
    shelves = {
        "Pre-training: bertsmith pretrain ": PRETRAIN_RECIPES,
        "Fine-tuning: bertsmith finetune ": FINETUNE_RECIPES,
        "Sentence vectors: bertsmith sentences train ": SENTENCE_RECIPES,
        "Writing: bertsmith finetune PAIRS --task ": WRITE_RECIPES,
        "Grids of variations: bertsmith ablate ": ABLATIONS,
        "Correction: bertsmith finetune PAIRS --task correct ": CORRECT_RECIPES,
    }
    for kind, (title, shelf) in zip(kinds, shelves.items(), strict=True):
        first, *rest = kind.splitlines()
        assert first.startswith(title)
        assert [line.split()[0] for line in rest] == sorted(shelf.shipped())
    assert run("recipes", "show", "bert-wwm") == 0
    assert capsys.readouterr().out == PRETRAIN_RECIPES.text("bert-wwm")
    assert run("recipes", "show", "bert-wwm", "--whole") == 0
    assert "weight_decay = 0.01" in capsys.readouterr().out
    assert run("recipes", "show", "squad") == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert (shown["extends"], shown["plan"]) == ("default-answer", {"epochs": 3.0, "batch": 32})
    assert run("recipes", "show", "features") == 0
    assert capsys.readouterr().out.startswith("# The encoder as it is")
    assert run("recipes", "show", "squad", "--whole") == 0
    assert "micro_tokens = 8192" in capsys.readouterr().out


@pytest.mark.parametrize("whole", [False, True])
def test_the_command_knows_both_kinds_of_recipe_and_files(whole, tmp_path, capsys) -> None:
    show = ("recipes", "show", *(["--whole"] if whole else []))
    assert run(*show, "squadd2") == 2
    assert "did you mean 'squad2'" in capsys.readouterr().err
    assert run(*show, tmp_path / "none.toml") == 2
    assert "there is no recipe file" in capsys.readouterr().err
    for parent, said in (("bert", "objectives"), ("sst2", "evaluations")):
        path = tmp_path / f"{parent}-mine.toml"
        path.write_text(f'extends = "{parent}"\n')
        assert run(*show, path) == 0
        assert (said in capsys.readouterr().out) == whole


def test_a_recipe_of_the_other_kind_is_named_as_such() -> None:
    with pytest.raises(ConfigError, match=r"'sst2' is one of `bertsmith finetune`.*albert"):
        load_recipe("sst2")
