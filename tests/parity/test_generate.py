"""Greedy search and beams equal `generate` of transformers, token by token, with their scores."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_beams import plain_beams
from tiny_models import randomized
from toy_writers import letter_tokenizer
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
)

from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions, WritingPlan
from bertsmith.runtime.loading import load
from bertsmith.text.tokenizer import Tokenizer

PROMPTS = 1_000 if os.environ.get("BERTSMITH_LONG") else 24
SIZE = 40
START, END, PAD = 2, 3, 0
CLOSE = 1e-5  # candidates that lie nearer may change places


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return letter_tokenizer(SIZE)


def published(kind: str) -> Any:
    shape: dict[str, Any] = {"vocab_size": SIZE, "pad_token_id": PAD, "eos_token_id": END}
    if kind == "bart":
        layers = {
            f"{side}_{what}": 2
            for side in ("encoder", "decoder")
            for what in ("layers", "attention_heads")
        }
        widths = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
        config = BartConfig(
            **shape,
            **layers,
            **widths,
            max_position_embeddings=48,
            decoder_start_token_id=START,
            bos_token_id=START,
            forced_eos_token_id=None,
        )
        return randomized(BartForConditionalGeneration(config), seed=1)
    if kind == "gpt2":
        gpt2 = GPT2Config(
            **shape, n_embd=16, n_layer=2, n_head=2, n_positions=48, bos_token_id=START
        )
        return randomized(GPT2LMHeadModel(gpt2), seed=2)
    bert = BertConfig(
        **shape,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
        is_decoder=True,
        bos_token_id=START,
    )
    return randomized(BertLMHeadModel(bert), seed=3)


def random_text(rng: random.Random) -> str:
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(SIZE - 5)]
    return " ".join(rng.choices(words, k=rng.randint(1, 12)))


def random_case(rng: random.Random) -> tuple[GenerationOptions, dict[str, Any]]:
    """The same options for us and for transformers."""
    most, beams = rng.randint(3, 14), rng.randint(1, 5)
    ours: dict[str, Any] = {"max_new": most}
    theirs: dict[str, Any] = {"max_new_tokens": most, "do_sample": False, "num_beams": beams}
    if beams > 1:
        stop = rng.choice(["early", "likely", "never"])
        answers, penalty = rng.randint(1, beams), rng.choice([-1.0, -0.3, 0.0, 0.7, 1.0, 2.0])
        ours |= {"beams": beams, "stop": stop, "length_penalty": penalty, "answers": answers}
        theirs |= {
            "early_stopping": {"early": True, "likely": False, "never": "never"}[stop],
            "length_penalty": penalty,
            "num_return_sequences": answers,
        }
    for ours_name, theirs_name, values in (
        ("no_repeat", "no_repeat_ngram_size", (1, 2, 3)),
        ("repetition_penalty", "repetition_penalty", (0.8, 1.2, 1.7)),
        ("min_new", "min_new_tokens", (1, 3)),
    ):
        if rng.random() < 0.4:
            ours[ours_name] = theirs[theirs_name] = rng.choice(values)
    return GenerationOptions(**ours), theirs


def up_to_end(ids: list[int]) -> tuple[int, ...]:
    return tuple(ids[: ids.index(END) + 1]) if END in ids else tuple(ids)


def near_ties(made: TextGenerator, ids: list[int], plan: WritingPlan) -> bool:
    """Whether rounding may decide: slightly other logits give another answer."""
    source = np.array(ids)
    before = made.writer.begun(source)

    def logits(new: Sequence[int], noise: torch.Generator) -> torch.Tensor:
        state = made.writer.begin([source])
        row = state.logits[0]
        for token in new:
            row = made.writer.step(state, torch.tensor([token]))[0]
        return row + CLOSE * torch.randn(row.shape, generator=noise)

    def shaken(seed: int) -> tuple[tuple[int, ...], ...]:
        noise = torch.Generator().manual_seed(seed)
        found = plain_beams(lambda new: logits(new, noise), plan, before)
        return tuple(new for _, new in found)

    return len({shaken(seed) for seed in range(6)}) > 1


def saved(kind: str, model: Any, tokenizer: Tokenizer, folder: Path) -> Path:
    """A folder that transformers wrote, with our tokenizer."""
    model.save_pretrained(folder)
    tokenizer.save(folder / "tokenizer")
    for file in (folder / "tokenizer").iterdir():
        file.rename(folder / file.name)
    (folder / "tokenizer").rmdir()
    return folder


@pytest.mark.parametrize("kind", ["bart", "gpt2", "bert"])
def test_generation_equals_that_of_transformers(
    kind: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model, rng = published(kind), random.Random(kind)
    cross = kind == "bart"
    made = load(saved(kind, model, tokenizer, tmp_path / kind), precision="fp32").generator()
    ties = 0
    for _ in range(PROMPTS):
        options, theirs = random_case(rng)
        text = random_text(rng)
        ids = tokenizer.encode(text).ids.tolist()[: None if cross else -1]
        (found,) = made.generate([text], options)
        output = model.generate(
            torch.tensor([ids]),
            **theirs,
            return_dict_in_generate=True,
            output_scores=True,
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        )
        skipped = 1 if cross else len(ids)
        expected = [up_to_end(row[skipped:].tolist()) for row in output.sequences]
        if [one.ids for one in found.answers] != expected:
            assert near_ties(made, ids, made.plan(options)), (text, options)
            ties += 1
            continue
        if theirs["num_beams"] > 1:
            scores = [one.score for one in found.answers]
            assert scores == pytest.approx(output.sequences_scores.tolist(), rel=1e-6, abs=1e-4)
    assert ties <= max(1, PROMPTS // 50)


@pytest.mark.parametrize("kind", ["bart", "gpt2"])
def test_many_texts_together_equal_transformers_one_by_one(
    kind: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model, rng = published(kind), random.Random(3)
    made = load(saved(kind, model, tokenizer, tmp_path / kind), precision="fp32").generator()
    texts = [random_text(rng) for _ in range(12)]
    options = GenerationOptions(beams=3, max_new=10, no_repeat=2)
    for text, found in zip(texts, made.generate(texts, options), strict=True):
        ids = tokenizer.encode(text).ids.tolist()[: None if kind == "bart" else -1]
        output = model.generate(
            torch.tensor([ids]),
            num_beams=3,
            max_new_tokens=10,
            no_repeat_ngram_size=2,
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        )
        expected = up_to_end(output[0, 1 if kind == "bart" else len(ids) :].tolist())
        if found.answers[0].ids != expected:
            assert near_ties(made, ids, made.plan(options)), text
