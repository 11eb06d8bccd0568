"""Greedy search and beams equal `generate` of transformers, token by token, with their scores."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
import torch
from plain_beams import plain_beams
from tiny_models import randomized
from toy_writers import PublishedWriter, letter_tokenizer
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
)

from bertsmith.folders.generation import GenerationDefaults
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions, WritingPlan
from bertsmith.text.tokenizer import Tokenizer

PROMPTS = 1_000 if os.environ.get("BERTSMITH_LONG") else 12
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
    writer: PublishedWriter = made.writer  # type: ignore[assignment]
    source, before = np.array(ids), made.writer.begun(np.array(ids))

    def shaken(seed: int) -> list[tuple[int, ...]]:
        noise = torch.Generator().manual_seed(seed)

        def logits(new: Any) -> torch.Tensor:
            row = writer._rows([source], [new])[0]
            return row + CLOSE * torch.randn(row.shape, generator=noise)

        return [new for _, new in plain_beams(logits, plan, before)]

    return len({tuple(shaken(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize("kind", ["bart", "gpt2", "bert"])
def test_generation_equals_that_of_transformers(kind: str, tokenizer: Tokenizer) -> None:
    model, rng = published(kind), random.Random(kind)
    cross = kind == "bart"
    made = TextGenerator(
        PublishedWriter(model, start=START if cross else None),
        tokenizer,
        GenerationDefaults(ends=(END,), start=START if cross else None),
        continues=not cross,
    )
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
            continue
        if theirs["num_beams"] > 1:
            scores = [one.score for one in found.answers]
            assert scores == pytest.approx(output.sequences_scores.tolist(), abs=1e-4)
