"""What every batch type promises: visibility, positions and channels reach the model."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.nn import (
    Anticausal,
    Causal,
    Dense,
    Encoder,
    Inputs,
    Mixed,
    Prefix,
    Sees,
    visibility,
)
from bertsmith.nn.attention import Attention
from bertsmith.nn.block import Block
from bertsmith.nn.embeddings import Embeddings, embedding_table
from bertsmith.nn.feed_forward import FeedForward
from bertsmith.objectives.batch import PretrainBatch, Targets, rows_inputs
from bertsmith.runtime.engines.batches import RowBatch
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.text.encoding import Encoding

LENGTHS = (5, 3, 7)
CLOSE = {"rtol": 0.0, "atol": 1e-5}


@dataclass(frozen=True)
class Text:
    """One text with everything that a batch may carry."""

    ids: np.ndarray
    segments: np.ndarray
    tasks: np.ndarray
    positions: np.ndarray
    source: int


def some_texts() -> list[Text]:
    random = np.random.default_rng(2)
    return [
        Text(
            ids=random.integers(0, 20, length).astype(np.int32),
            segments=random.integers(0, 2, length).astype(np.int32),
            tasks=random.integers(0, 3, length).astype(np.int32),
            positions=random.integers(0, 9, length).astype(np.int32),
            source=int(random.integers(1, length)),
        )
        for length in LENGTHS
    ]


def joined(texts: Sequence[Text], name: str) -> np.ndarray:
    return np.concatenate([getattr(text, name) for text in texts])


def sees_of(texts: Sequence[Text], kind: str) -> Sees:
    prefix = Prefix(tuple(text.source for text in texts))
    if kind == "dense":
        return Dense(visibility(prefix, [len(text.ids) for text in texts]))
    if kind == "mixed":
        backward = tuple(len(text.ids) == 3 for text in texts)
        return Mixed(prefix.sources, backward)
    return {"causal": Causal(), "anticausal": Anticausal()}.get(kind, prefix)


def of_runtime(texts: Sequence[Text], kind: str) -> Inputs:
    starts = np.cumsum([0, *(len(text.ids) for text in texts)]).astype(np.int32)
    channels = {name: joined(texts, name) for name in ("segments", "tasks")}
    numbers = tuple(range(len(texts)))
    ids, positions = joined(texts, "ids"), joined(texts, "positions")
    return RowBatch(numbers, ids, starts, channels, positions, sees_of(texts, kind)).inputs()


def of_training(texts: Sequence[Text], kind: str) -> PretrainBatch:
    rows = RowsBatch(
        ids=joined(texts, "ids"),
        segments=joined(texts, "segments"),
        words=joined(texts, "ids"),
        lengths=tuple(len(text.ids) for text in texts),
        keys=np.arange(len(texts), dtype=np.uint64),
        channels={"tasks": joined(texts, "tasks")},
        positions=joined(texts, "positions"),
        sees=sees_of(texts, kind),
    )
    at = torch.tensor([0])
    return PretrainBatch.of(rows_inputs(rows), {"mlm": Targets(at=at, of=at)})


def of_tasks(texts: Sequence[Text], kind: str):
    features = []
    for number, text in enumerate(texts):
        size = len(text.ids)
        nothing = np.zeros(size, np.int32)
        encoding = Encoding(
            ids=text.ids,
            words=nothing,
            offsets=np.zeros((size, 2), np.int32),
            segments=text.segments,
            fields=nothing,
            cut=(0,),
            name_of=str,
        )
        visible = visibility(sees_of([text], kind), [size])[0].numpy()
        features.append(
            Feature(
                encoding=encoding,
                example=number,
                channels={"tasks": text.tasks},
                positions=text.positions,
                visible=visible,
            )
        )
    return task_batch(features)


KINDS: dict[str, Callable] = {
    "runtime": of_runtime,
    "training": of_training,
    "tasks": of_tasks,
}
ALL = pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
SEES = pytest.mark.parametrize("kind", ["causal", "anticausal", "prefix", "mixed", "dense"])


def inputs_in(batch) -> Inputs:
    return batch if isinstance(batch, Inputs) else batch.inputs


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    norms = [nn.LayerNorm(16) for _ in range(2)]
    block = Block(Attention(16, 2), norms[0], FeedForward(16, 32), norms[1])
    embeddings = Embeddings(embedding_table(20, 16), rows=9, channels={"segments": 2, "tasks": 3})
    encoder = Encoder(embeddings, [block]).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0.0, 0.5)
    return encoder


@ALL
@SEES
def test_everything_is_in_the_inputs_and_survives_a_move(made: Callable, kind: str) -> None:
    texts = some_texts()
    batch = made(texts, kind)
    for inputs in (inputs_in(batch), inputs_in(batch.to("cpu"))):
        assert torch.equal(inputs.ids, torch.from_numpy(joined(texts, "ids")).long())
        assert inputs.layout.lengths == LENGTHS
        assert inputs.layout.positions.tolist() == joined(texts, "positions").tolist()
        for name in ("segments", "tasks"):
            assert inputs.channels[name].tolist() == joined(texts, name).tolist()
        expected = visibility(sees_of(texts, kind), LENGTHS)
        assert torch.equal(visibility(inputs.layout.sees, LENGTHS), expected)
    moved = inputs_in(batch.to("meta"))
    tensors = [moved.ids, moved.layout.positions, *moved.channels.values()]
    if isinstance(moved.layout.sees, Dense):
        tensors.append(moved.layout.sees.visible)
    assert {tensor.device.type for tensor in tensors} == {"meta"}


@ALL
@SEES
@torch.no_grad()
def test_neighbors_change_nothing(made: Callable, kind: str, encoder: Encoder) -> None:
    texts = some_texts()
    together = encoder(inputs_in(made(texts, kind))).hidden.split(LENGTHS)
    for text, hidden in zip(texts, together, strict=True):
        alone = encoder(inputs_in(made([text], kind))).hidden
        torch.testing.assert_close(hidden, alone, **CLOSE)


@ALL
@torch.no_grad()
def test_every_part_changes_what_the_encoder_gives(made: Callable, encoder: Encoder) -> None:
    texts = some_texts()
    plain = encoder(inputs_in(made(texts, "prefix"))).hidden
    for name in ("ids", "segments", "tasks", "positions", "source"):
        first = texts[0]
        other = 1 - first.source % 2 if name == "source" else (getattr(first, name) + 1) % 2
        changed = [replace(first, **{name: other}), *texts[1:]]
        hidden = encoder(inputs_in(made(changed, "prefix"))).hidden
        assert (hidden - plain)[:5].abs().max() > 1e-3, name
        torch.testing.assert_close(hidden[5:], plain[5:], **CLOSE)


@ALL
@SEES
def test_a_batch_is_a_pure_function_of_its_texts_and_survives_a_pickle(
    made: Callable, kind: str
) -> None:
    """Ranks and resumed runs make their batches again; worker processes may send them."""
    first = inputs_in(made(some_texts(), kind))
    for second in (inputs_in(made(some_texts(), kind)), pickle.loads(pickle.dumps(first))):
        assert torch.equal(first.ids, second.ids)
        assert torch.equal(first.layout.positions, second.layout.positions)
        assert first.layout.lengths == second.layout.lengths
        sees = [visibility(one.layout.sees, LENGTHS) for one in (first, second)]
        assert torch.equal(*sees)
        for name, part in first.channels.items():
            assert torch.equal(part, second.channels[name])


@torch.no_grad()
def test_given_vectors_take_the_place_of_token_embeddings(encoder: Encoder) -> None:
    inputs = of_runtime(some_texts(), "prefix")
    rows = torch.tensor([1, 6])
    vectors = encoder.embeddings.tokens.weight[torch.tensor([4, 9])]
    given = replace(inputs, vectors=vectors, vector_rows=rows)
    ids = inputs.ids.clone()
    ids[rows] = torch.tensor([4, 9])
    assert torch.equal(encoder(given).hidden, encoder(replace(inputs, ids=ids)).hidden)
    assert {given.to("meta").vectors.device.type, given.to("meta").vector_rows.device.type} == {
        "meta"
    }


@pytest.mark.parametrize("side", ["right", "left"])
@torch.no_grad()
def test_a_padded_batch_gives_the_same_rows_in_its_own_places(side: str, encoder: Encoder) -> None:
    texts = some_texts()
    ids, segments, mask = (torch.zeros(3, 9, dtype=torch.long) for _ in range(3))
    for number, text in enumerate(texts):
        size = len(text.ids)
        place = slice(0, size) if side == "right" else slice(9 - size, 9)
        ids[number, place] = torch.from_numpy(text.ids).long()
        segments[number, place] = torch.from_numpy(text.segments).long()
        mask[number, place] = 1
    inputs = Inputs.padded(ids, mask, segments)
    packed = Inputs.of(
        joined(texts, "ids"), LENGTHS, channels={"segments": joined(texts, "segments")}
    )
    hidden = encoder(inputs).hidden
    assert torch.equal(hidden, encoder(packed).hidden)
    back = inputs.layout.to_padded(hidden, mask)
    assert back.shape == (3, 9, 16)
    assert torch.equal(back[mask.bool()], hidden)
    assert not back[~mask.bool()].any()
    assert inputs.layout.to_padded(hidden).shape == (3, 7, 16)


def test_a_mask_with_a_hole_is_refused() -> None:
    with pytest.raises(Exception, match="mask of text 1 has a hole"):
        Inputs.padded(torch.zeros(2, 3), torch.tensor([[1, 1, 0], [1, 0, 1]]))
