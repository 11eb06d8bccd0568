"""Generators of folders: each kind of model writes the same with its cache and without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from folder_models import tiny_model, tiny_tokenizer

from bertsmith.folders.generation import Writes, generation_extras
from bertsmith.folders.write import save_model
from bertsmith.models.spec import DecoderSpec
from bertsmith.runtime.generation.forms import CausalForm, CrossForm, Form, PrefixForm
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.runtime.generation.plain import PlainWriter
from bertsmith.runtime.loading import load

MASK = 4
KINDS: dict[str, tuple[str, dict[str, Any], Writes | None, Form]] = {
    "causal": ("bert", {"sees": "before"}, None, CausalForm()),
    "mask": ("bert", {}, Writes(by="mask"), PrefixForm(by="mask", mask_id=MASK)),
    "shift": (
        "bert",
        {},
        Writes(by="shift", target_segment=0),
        PrefixForm(by="shift", target_segment=0),
    ),
    "cross": (
        "bart",
        {"decoder": DecoderSpec(layers=2, heads=2, feed_forward=32, start=3)},
        None,
        CrossForm(start=3),
    ),
}
TEXTS = ["a b c d", "e", "f g 字 词", "h i j k l m a", "b b b"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_writes_the_same_with_and_without_a_cache(kind: str, tmp_path: Path) -> None:
    variant, changes, writes, form = KINDS[kind]
    head = "masked_lm" if variant == "bert" else "language_model"
    model = tiny_model(variant, heads=[head], **changes)
    extras = generation_extras(writes=writes)
    save_model(model, tiny_tokenizer(), tmp_path / "model", extras=extras)
    loaded = load(tmp_path / "model", precision="fp32")
    made = loaded.generator()
    plain = TextGenerator(
        PlainWriter(loaded.model, form),
        loaded.host.tokenizer,
        made.defaults,
        continues=kind == "causal",
    )
    for options in (
        GenerationOptions(max_new=8),
        GenerationOptions(max_new=8, beams=3, answers=3, no_repeat=2),
        GenerationOptions(max_new=8, sample=True, answers=2, seed=3),
    ):
        found = made.generate(TEXTS, options)
        expected = plain.generate(TEXTS, options)
        for one, other in zip(found, expected, strict=True):
            assert [answer.ids for answer in one.answers] == [a.ids for a in other.answers]
            scores = [answer.score for answer in other.answers]
            assert [answer.score for answer in one.answers] == pytest.approx(scores, abs=1e-4)
