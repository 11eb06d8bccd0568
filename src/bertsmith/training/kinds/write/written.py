"""Texts that a model writes, and what they are compared with: simple baselines, other sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch

from bertsmith.folders.generation import GenerationDefaults, Writes
from bertsmith.models.build import Model
from bertsmith.nn.modes import evaluating
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.runtime.generation.cached import writer_of
from bertsmith.runtime.generation.forms import CausalForm, CrossForm, Form, PrefixForm
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.tasks.write.arrange import Arrangement
from bertsmith.tasks.write.encoding import EncodedPairs, WritingLengths
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import Truncation
from bertsmith.training.kinds.write.workload import exact_batches

SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")


def first_sentence(text: str) -> str:
    """The first sentence of a text, the usual baseline of summaries."""
    found = SENTENCE_END.split(text.strip(), maxsplit=1)
    return found[0].strip()


def shortened(tokenizer: Tokenizer, text: str, limit: int) -> str:
    """The beginning of a text that a model reads, where it reads `limit` tokens at most."""
    _, cut = tokenizer.fast_ids([text], limit)
    if not cut[0]:
        return text
    encoding = tokenizer.encode(text, truncation=Truncation(max_length=limit))
    return text[: int(encoding.offsets[:, 1].max())]


@torch.no_grad()
def token_losses(
    model: Model, arrangement: Arrangement, pairs: EncodedPairs, *, micro_tokens: int = 4_096
) -> float:
    """The loss per target token, as targets are written from left to right, in nats."""
    device = next(model.parameters()).device
    total, count = 0.0, 0
    with evaluating(model):
        for batch in exact_batches(arrangement, pairs, np.arange(len(pairs)), micro_tokens):
            moved = batch.to(device)
            hidden, _ = moved.hidden(model)
            loss, _ = token_loss(model, hidden, moved.of)
            total += float(loss.sum)
            count += loss.count
    return total / max(1, count)


def wrong_source(
    model: Model, arrangement: Arrangement, pairs: EncodedPairs
) -> dict[str, float] | None:
    """What targets cost with their own source and with that of another row; None for one source.

    A model that does not read its source loses nothing by the exchange. Sources are exchanged with
    those of about the same length.
    """
    order = sorted(range(len(pairs)), key=lambda row: (len(pairs.sources[row]), row))
    other = list(range(len(pairs)))
    for place, row in enumerate(order):
        own = pairs.sources[row].tobytes()
        for step in range(1, len(order)):
            found = order[(place + step) % len(order)]
            if pairs.sources[found].tobytes() != own:
                other[row] = found
                break
        else:
            return None
    exchanged = EncodedPairs(sources=[pairs.sources[row] for row in other], targets=pairs.targets)
    own_loss = token_losses(model, arrangement, pairs)
    other_loss = token_losses(model, arrangement, exchanged)
    return {"own": own_loss, "other": other_loss, "costs": other_loss - own_loss}


def text_generator(
    model: Model, tokenizer: Tokenizer, *, writes: Writes, defaults: GenerationDefaults
) -> TextGenerator:
    """What writes with a model in memory; `writes` counts for bidirectional models alone."""
    spec = model.spec
    if spec.decoder is not None:
        form: Form = CrossForm(spec.decoder.start)
    elif spec.sees == "before":
        form = CausalForm()
    else:
        segments = (writes.source_segment, writes.target_segment)
        form = PrefixForm(writes.by, *segments, tokenizer.special.mask)
    return TextGenerator(
        writer_of(model, form), tokenizer, defaults, continues=spec.sees == "before"
    )


def model_texts(
    model: Model,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    *,
    writes: Writes,
    defaults: GenerationDefaults,
    lengths: WritingLengths,
) -> list[str]:
    """The likeliest text for each source, greedily; sources are cut as in training."""
    with evaluating(model):
        generator = text_generator(model, tokenizer, writes=writes, defaults=defaults)
        texts = [shortened(tokenizer, source, lengths.source) for source in sources]
        options = GenerationOptions(max_new=lengths.target)
        return [one.answers[0].text for one in generator.generate(texts, options)]
