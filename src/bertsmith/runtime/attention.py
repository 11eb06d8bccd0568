"""What attention does with texts: weights between their tokens, and their queries and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.attention import AttentionTrace
from bertsmith.nn.encoder import Want
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.packing import in_passes
from bertsmith.runtime.host import Host
from bertsmith.text.encoding import Encoding

Squares = NDArray[np.float32]
BUDGET = 1_024  # tokens of a pass: the weights of all layers and heads are in memory at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextAttention:
    """The attention of one text, or of a pair, between its n tokens, special ones among them.

    `weights` (L, H, n, n) are those of the softmax in the `layers` and `heads` that were asked for,
    row i what token i reads. `queries`, `keys` and `values` (L, H, n, K) are there where they were
    asked for; the weights are a softmax over (queries keys' + added) / sqrt(K) of what a token may
    see, with `added` (L, H, n, n) where the model has positions inside attention.
    """

    encoding: Encoding
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weights: Squares
    queries: Squares | None = None
    keys: Squares | None = None
    values: Squares | None = None
    added: Squares | None = None

    @property
    def tokens(self) -> list[str]:
        """The n tokens."""
        return self.encoding.tokens


def text_attention(
    host: Host,
    texts: Iterable[str | Sequence[str]],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    projections: bool = False,
) -> list[TextAttention]:
    """The attention of each text, or tuple of texts, in order; all `layers` and `heads` by default.

    It is computed in fp32 or, on a GPU, in the precision of the model, by torch. Texts are not cut:
    one that does not fit the positions of the model is refused.
    """
    if isinstance(texts, str):
        raise TextError("attention takes a list of texts; for one text, give [text]")
    encodings = [
        host.tokenizer.encode_fields((text,) if isinstance(text, str) else text) for text in texts
    ]
    shapes = host.model.spec.layer_shapes
    chosen_layers = _chosen(layers, len(shapes), "layer")
    counts = {shapes[number].heads for number in chosen_layers}
    if heads is None and len(counts) > 1:
        raise TextError(
            f"these layers have {' or '.join(map(str, sorted(counts)))} heads: name heads that all "
            "of them have, or ask for one layer at a time"
        )
    chosen_heads = _chosen(heads, min(counts, default=0), "head")
    widths = {shapes[number].head_width for number in chosen_layers}
    if projections and len(widths) > 1:
        raise TextError(
            f"these layers have heads of {' or '.join(map(str, sorted(widths)))} columns: ask for "
            "their projections one layer at a time"
        )
    want = Want(projections=True) if projections else Want(attention=True)

    def run(numbers: Sequence[int]) -> Iterator[TextAttention]:
        some = [encodings[number] for number in numbers]
        with torch.inference_mode(), host.torch_turn():
            encoded = host.model(_inputs(some).to(host.device), want=want)
        traces = encoded.projections or [AttentionTrace(weights=w) for w in encoded.attention or ()]
        for place, own in enumerate(some):
            parts = [traces[number].of_text(place, len(own)) for number in chosen_layers]
            yield TextAttention(
                encoding=own,
                layers=chosen_layers,
                heads=chosen_heads,
                weights=_stacked([part.weights[[*chosen_heads]] for part in parts]),
                queries=_stacked_or_none([part.queries for part in parts], chosen_heads),
                keys=_stacked_or_none([part.keys for part in parts], chosen_heads),
                values=_stacked_or_none([part.values for part in parts], chosen_heads),
                added=_stacked_or_none([part.added for part in parts], chosen_heads),
            )

    return in_passes(list(map(len, encodings)), BUDGET, run)


def _chosen(wanted: Sequence[int] | None, count: int, what: str) -> tuple[int, ...]:
    """The wanted numbers, checked; all of them for None."""
    if wanted is None:
        return tuple(range(count))
    for number in wanted:
        if not 0 <= number < count:
            raise TextError(f"{what} {number} is not one of 0 to {count - 1}")
    if not wanted:
        raise TextError(f"name at least one {what}, or leave {what}s out for all of them")
    return tuple(wanted)


def _inputs(encodings: Sequence[Encoding]) -> Inputs:
    return Inputs.of(
        np.concatenate([one.ids for one in encodings]),
        [len(one) for one in encodings],
        channels={SEGMENTS: np.concatenate([one.segments for one in encodings])},
    )


def _stacked(layers: Sequence[Tensor]) -> Squares:
    return torch.stack(list(layers)).float().cpu().numpy()


def _stacked_or_none(layers: Sequence[Tensor | None], heads: Sequence[int]) -> Squares | None:
    there = [layer[[*heads]] for layer in layers if layer is not None]
    return _stacked(there) if there else None
