"""Sampling by filling: a masked LM writes by masking one place of a text after another.

Each step masks a place and draws a token for it from the model's prediction there (Wang and Cho
2019, arXiv:1902.04094). The predictions for single places belong to no distribution over whole
texts, so this is no sampling from "the model's" texts, and it is not called that here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, FolderError, TextError, TooLongError
from bertsmith.folders.generation import FACTORS, LEAST_FACTOR, MOST_FACTOR
from bertsmith.random_keys import key_of, uniforms
from bertsmith.runtime.engines.batches import row_batch
from bertsmith.runtime.generation.sample import inverse
from bertsmith.runtime.generation.search import largest
from bertsmith.runtime.host import not_finite
from bertsmith.runtime.mask_filling import MaskedModel
from bertsmith.text.encoding import Ints

Order = Literal["random", "left_to_right"]
States = NDArray[np.int32]
"""(R, L): the ids of R texts of equal length."""
Conditional = Callable[[States, NDArray[np.int64]], Tensor]
"""Texts (R, L) and a place of each (R,) -> logits (R, V) there, whatever token is there now."""

LENGTH, STEPS, TOP_K = 20, 500, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingOptions:
    """How a text is written by filling.

    `start` may have masks, and then they are what is filled; else `length` masks follow it. Random
    places take `steps` steps, of which the first half draws from the whole vocabulary and the rest
    among the `top_k` likeliest tokens (0: all); left to right, each place is filled once.
    """

    start: str = ""
    length: int | None = None
    order: Order = "random"
    steps: int | None = None
    temperature: float = 1.0
    top_k: int | None = None
    seed: int = 0
    answers: int = 1

    def __post_init__(self) -> None:
        for name in ("length", "steps", "answers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if self.order not in ("random", "left_to_right"):
            raise ConfigError(f"order is {self.order!r}; choose random or left_to_right")
        if not LEAST_FACTOR <= self.temperature <= MOST_FACTOR:
            raise ConfigError(f"temperature is {self.temperature}; give {FACTORS}")
        if self.top_k is not None and self.top_k < 0:
            raise ConfigError(f"top_k is {self.top_k}; give 0 for all tokens, or a number above it")
        if self.order == "left_to_right" and self.steps is not None:
            raise ConfigError(
                "steps are for random places; left to right every place is filled once: leave "
                "steps out"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledText:
    """A text written by filling, and the mean pseudo-log-likelihood of its tokens."""

    text: str
    tokens: tuple[str, ...]
    score: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"text": self.text, "tokens": list(self.tokens), "score": self.score}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One step of all texts: `places` (R,), `numbers` (R,) in [0, 1) for the draws, top-k or 0."""

    places: NDArray[np.int64]
    numbers: NDArray[np.float64]
    top_k: int


def sample_by_filling(model: MaskedModel, options: FillingOptions) -> list[FilledText]:
    """Texts that the model writes, `options.answers` of them; the same for the same seed."""
    ids, places = _start(model, options)
    begin = np.tile(ids, (options.answers, 1))
    steps = filling_states(_conditional(model), begin, places, options)
    return [_filled(model, row) for row in deque(steps, maxlen=1).pop()]


def filling_states(
    conditional: Conditional,
    states: States,
    places: NDArray[np.int64],
    options: FillingOptions,
) -> Iterator[States]:
    """The texts (R, L) after each step; only `places` change."""
    states = states.copy()
    for step in _steps(len(states), places, options):
        logits = conditional(states, step.places) / options.temperature
        ids = torch.arange(logits.shape[1]).expand(len(logits), -1)
        if 0 < step.top_k < logits.shape[1]:
            logits, ids = largest(logits, step.top_k)
            ids, order = ids.sort(dim=1)  # in the order of ids a near-tie cannot change a draw
            logits = logits.gather(1, order)
        drawn = inverse(logits.double().softmax(dim=1), torch.from_numpy(step.numbers))
        states[np.arange(len(states)), step.places] = ids.gather(1, drawn[:, None])[:, 0].numpy()
        yield states.copy()


def _steps(rows: int, places: NDArray[np.int64], options: FillingOptions) -> Iterator[_Step]:
    """Places and random numbers: functions of the seed, the answer and the step."""
    keys = [key_of("filling", number, seed=options.seed) for number in range(rows)]
    key = np.array(keys, dtype=np.uint64)
    top_k = TOP_K if options.top_k is None else options.top_k
    if options.order == "left_to_right":
        for number, place in enumerate(places.tolist()):
            chosen = np.full(rows, place, dtype=np.int64)
            yield _Step(places=chosen, numbers=_numbers(key, 2 * number), top_k=top_k)
        return
    count = options.steps or STEPS
    for number in range(count):
        chosen = (_numbers(key, 2 * number + 1) * len(places)).astype(np.int64)
        yield _Step(
            places=places[chosen],
            numbers=_numbers(key, 2 * number),
            top_k=0 if number < count // 2 else top_k,
        )


def _numbers(keys: NDArray[np.uint64], place: int) -> NDArray[np.float64]:
    return uniforms(keys, np.full(len(keys), place))


def _start(model: MaskedModel, options: FillingOptions) -> tuple[Ints, NDArray[np.int64]]:
    """The ids of the text to begin with, and the places that are filled."""
    text = options.start.strip()
    if model.mask in text:
        if options.length is not None:
            raise ConfigError(
                f"the start has masks ({model.mask}), which are what is filled; leave length out"
            )
    else:
        masks = " ".join([model.mask] * (options.length or LENGTH))
        text = f"{text} {masks}" if text else masks
    try:
        encoding = model.encoded(text)
    except TooLongError as fault:
        raise TooLongError(
            f"the model reads at most {model.longest} tokens, and the start with the masks has "
            f"more; give a smaller length (--length) or a shorter start (--start): {fault}"
        ) from fault
    places = np.flatnonzero((encoding.ids == model.mask_id) & (encoding.fields >= 0))
    if not len(places):
        raise TextError("no place to fill is left in the text; give masks, or a length")
    return encoding.ids, places.astype(np.int64)


def _filled(model: MaskedModel, ids: Ints) -> FilledText:
    """A finished text with its score: every token of it is masked once, the others in sight."""
    special = model.tokenizer.special
    frame = [one for one in (special.cls, special.sep) if one is not None]
    inside = np.flatnonzero(~np.isin(ids, frame))
    scores = _predicted(model, np.tile(ids, (len(inside), 1)), inside)
    own = scores[torch.arange(len(inside)), torch.from_numpy(ids[inside]).long()]
    return FilledText(
        text=model.tokenizer.decode(ids[inside]),
        tokens=tuple(model.tokenizer.id_to_token(int(one)) or "" for one in ids[inside]),
        score=float(own.double().mean()),
    )


def _predicted(model: MaskedModel, states: States, places: NDArray[np.int64]) -> Tensor:
    """Log-probabilities (R, V) at a place (R,) of each text (R, L), which is masked for it."""
    masked = states.copy()
    rows = np.arange(len(states))
    masked[rows, places] = model.mask_id
    at = rows * states.shape[1] + places
    hidden = model.host.hidden(row_batch(rows.tolist(), list(masked)), at.tolist())
    scores = model.log_probabilities(hidden).cpu()[:, : model.tokenizer.vocab_size]
    if not scores.isfinite().all():
        raise not_finite("the text")
    return scores


def _conditional(model: MaskedModel) -> Conditional:
    """The model's predictions, without tokens that no text has."""
    forbidden = ~_writable(model)
    return lambda states, places: _predicted(model, states, places).masked_fill(
        forbidden, float("-inf")
    )


def _writable(model: MaskedModel) -> Tensor:
    """(V,) which tokens may be written: no control tokens, no unused rows."""
    size = model.tokenizer.vocab_size
    names = [model.tokenizer.id_to_token(number) for number in range(size)]
    control = model.tokenizer.control_tokens
    fine = [
        name is not None and name not in control and not name.startswith("[unused")
        for name in names
    ]
    if model.tokenizer.special.unk is not None:
        fine[model.tokenizer.special.unk] = False
    if not any(fine):
        raise FolderError("the vocabulary has control tokens only; nothing can be written")
    return torch.tensor(fine)
