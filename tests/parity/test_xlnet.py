"""XLNet here and in transformers: both streams, memory, heads, folders, all weights random."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from parity_families import ours
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model
from bertsmith.nn import Dense, Inputs, Layout
from bertsmith.nn.relative.encoder import Memory

CLOSE = {"rtol": 0.0, "atol": 2e-5}
SHAPE = {"vocab_size": 60, "d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 52}
TEXTS, LENGTH, PAST = 3, 9, 5


def reference(ending: str, **changes: object) -> transformers.PreTrainedModel:
    """A random XLNet, biases, norms and segments too."""
    config = transformers.XLNetConfig(**{**SHAPE, **changes})
    torch.manual_seed(7)
    model = getattr(transformers, "XLNet" + ending)(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "layer_norm.weight" in name
            parameter.normal_(1.0 if norm else 0.0, 0.2)
    config.architectures = ["XLNet" + ending]
    return model.eval()


def texts(length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Random ids and segments (B, L)."""
    random = torch.Generator().manual_seed(length)
    ids = torch.randint(9, 60, (TEXTS, length), generator=random)
    return ids, torch.randint(0, 3, (TEXTS, length), generator=random)


def packed(ids: Tensor, segments: Tensor | None, sees: Tensor | None = None) -> Inputs:
    layout = Layout.of([ids.shape[1]] * len(ids))
    if sees is not None:
        layout = Layout.of([ids.shape[1]] * len(ids), sees=Dense(sees))
    return Inputs(
        ids.flatten(), layout, {} if segments is None else {"segments": segments.flatten()}
    )


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("clamp", [-1, 4])
@torch.no_grad()
def test_both_streams_equal_the_reference(memory: bool, clamp: int) -> None:
    theirs = reference("LMHeadModel", clamp_len=clamp, mem_len=PAST)
    model = ours(theirs)
    ids, segments = texts()
    random = torch.Generator().manual_seed(2)
    visible = torch.rand(TEXTS, LENGTH, LENGTH, generator=random) < 0.5
    visible[:, :, 0] = True  # the reference looks at everything where nothing is visible
    asked = torch.tensor([[1, 4, 8], [2, 3, 7], [5, 6, 8]])
    mapping = torch.nn.functional.one_hot(asked, LENGTH).float()
    hidden = (~visible).float()
    mems, own = None, None
    if memory:
        before, parts = texts(PAST)
        mems = theirs(before, token_type_ids=parts).mems
        own = model.encoder.memory(packed(before, parts))
        for mine, their in zip(own.layers, mems, strict=True):
            torch.testing.assert_close(mine, their.transpose(0, 1).flatten(0, 1), **CLOSE)
    # The reference hides a row's own place from its query by the diagonal of perm_mask, and always
    # shows it to the content row.
    blind = hidden.clone()
    blind[:, range(LENGTH), range(LENGTH)] = 1.0
    wanted = theirs(
        ids, perm_mask=blind, target_mapping=mapping, token_type_ids=segments, mems=mems
    ).logits
    seen = visible.clone()
    seen[:, range(LENGTH), range(LENGTH)] = True
    queries = (asked + torch.arange(TEXTS)[:, None] * LENGTH).flatten()
    shuffled = torch.randperm(len(queries), generator=random)
    found = model.encoder(
        packed(ids, segments, seen), queries=queries[shuffled], memory=own, content=True
    )
    logits = model.logits("language_model", found.queried)
    torch.testing.assert_close(logits, wanted.flatten(0, 1)[shuffled], **CLOSE)
    content = theirs(
        ids, perm_mask=hidden * (1 - torch.eye(LENGTH)), token_type_ids=segments, mems=mems
    )
    logits = model.logits("language_model", found.hidden)
    torch.testing.assert_close(logits, content.logits.flatten(0, 1), **CLOSE)
    last = model.encoder(packed(ids, segments, seen), queries=queries, memory=own)
    assert not len(last.hidden)
    torch.testing.assert_close(last.queried[shuffled], found.queried, **CLOSE)


def logits_of(model: Model, head: str, inputs: Inputs) -> Tensor:
    by_rows = model.reads(head) == "rows"
    return model.logits(head, model(inputs).hidden if by_rows else model.text_rows(head, inputs))


HEADS = {
    "LMHeadModel": "language_model",
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "token",
    "ForQuestionAnsweringSimple": "span",
}


@pytest.mark.parametrize("ending", HEADS)
@torch.no_grad()
def test_folders_go_both_ways_with_equal_logits(ending: str, tmp_path: Path) -> None:
    changes = {"num_labels": 5} if "Classification" in ending else {}
    theirs = reference(ending, **changes)
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    model = loaded.model.eval()
    ids, segments = texts()
    found = logits_of(model, HEADS[ending], packed(ids, segments))
    save_model(model, None, tmp_path / "ours", labels=loaded.folder.reading.labels)
    again = getattr(transformers, "XLNet" + ending).from_pretrained(tmp_path / "ours").eval()
    for reference_model in (theirs, again):
        output = reference_model(ids, token_type_ids=segments)
        if ending == "ForQuestionAnsweringSimple":
            wanted = torch.stack([output.start_logits, output.end_logits], dim=-1)
        else:
            wanted = output.logits
        torch.testing.assert_close(found, wanted.reshape(found.shape), **CLOSE)
    reloaded = load_model(tmp_path / "ours").model.eval()
    assert torch.equal(logits_of(reloaded, HEADS[ending], packed(ids, segments)), found)


@torch.no_grad()
def test_texts_of_any_lengths_equal_left_padded_ones_of_the_reference() -> None:
    theirs = reference("LMHeadModel")
    model = ours(theirs)
    lengths = (7, 1, 12, 12, 5)
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(9, 60, (sum(lengths),), generator=random)
    found = model.logits("language_model", model(Inputs(ids, Layout.of(lengths))).hidden)
    padded = torch.full((5, 12), 5)
    mask = torch.zeros(5, 12)
    for text, part in enumerate(ids.split(lengths)):
        padded[text, 12 - len(part) :], mask[text, 12 - len(part) :] = part, 1
    wanted = theirs(padded, attention_mask=mask).logits[mask.bool()]
    torch.testing.assert_close(found, wanted, **CLOSE)


def test_memories_need_one_for_each_text() -> None:
    model = ours(reference("LMHeadModel"))
    ids, segments = texts()
    memory = Memory((torch.zeros(2, 32),) * 3, (2,))
    with pytest.raises(TextError, match="1 memories for 3 texts"):
        model.encoder(packed(ids, segments), queries=torch.tensor([1]), memory=memory)
