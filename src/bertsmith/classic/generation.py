"""Lines drawn from a language model of any kind, word by word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.language_model import LanguageModel
from bertsmith.errors import ConfigError
from bertsmith.folders.generation import FACTORS, LEAST_FACTOR, MOST_FACTOR

UNKNOWN_ID = 0


def generate_lines(
    model: LanguageModel,
    contexts: Sequence[NDArray[np.integer]],
    *,
    most: int = 50,
    temperature: float = 1.0,
    top: int | None = None,
    generator: torch.Generator,
) -> list[NDArray[np.int32]]:
    """What follows each context, up to the end of the line or `most` words.

    Words are drawn from the `top` most probable ones (all if None); temperature 0 takes the most
    probable one. "<unk>" is never drawn.
    """
    if most < 1 or (top is not None and top < 1):
        raise ConfigError("the number of words and top must be at least 1")
    if temperature != 0 and not LEAST_FACTOR <= temperature <= MOST_FACTOR:
        raise ConfigError(f"temperature is {temperature}; give 0, or {FACTORS}")
    lines = [np.asarray(context, dtype=np.int32) for context in contexts]
    starts = [len(line) for line in lines]
    living = list(range(len(lines)))
    end = len(model.words)
    for _ in range(most):
        if not living:
            break
        scores = torch.from_numpy(model.next_log_probabilities([lines[n] for n in living]))
        scores[:, UNKNOWN_ID] = -torch.inf
        drawn = _draw(scores, temperature, top, generator)
        for number, word in zip(list(living), drawn, strict=True):
            if word == end:
                living.remove(number)
            else:
                lines[number] = np.append(lines[number], np.int32(word))
    return [line[start:] for line, start in zip(lines, starts, strict=True)]


def _draw(
    scores: torch.Tensor, temperature: float, top: int | None, generator: torch.Generator
) -> list[int]:
    """One number per row (B, V + 1) of log probabilities."""
    if temperature == 0:
        return [int(n) for n in scores.argmax(dim=1)]
    if top is not None and top < scores.shape[1]:
        least = scores.topk(top, dim=1).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    chances = torch.softmax(scores / temperature, dim=1)
    return [int(n) for n in torch.multinomial(chances, 1, generator=generator)[:, 0]]
