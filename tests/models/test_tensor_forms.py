"""StoredAs forms of tensors: there and back, alone and through a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import TensorMismatchError
from bertsmith.folders.read import load_model
from bertsmith.folders.tensors import SINGLE
from bertsmith.folders.write import save_model, write_tensors
from bertsmith.models import VARIANTS
from bertsmith.models import build as build_module
from bertsmith.models.build import build
from bertsmith.models.names import published_state
from bertsmith.models.tensor_forms import Joined, Plain, SplitHeads, StoredAs, Transposed, join

pytestmark = pytest.mark.usefixtures("edited_folders")

SIZES = st.integers(1, 5)
BLOCK = "encoder.blocks.{i}."
BERT = VARIANTS["bert"]
# GPT-2's joined and transposed attention, XLNet's (D, H, K) and bare output.
FORMS = replace(
    BERT,
    names={
        **BERT.names,
        f"{BLOCK}attention.query": StoredAs("h.{i}.attn.c_attn", Joined(0, 3, Transposed())),
        f"{BLOCK}attention.key": StoredAs("h.{i}.attn.c_attn", Joined(1, 3, Transposed())),
        f"{BLOCK}attention.value": StoredAs("h.{i}.attn.c_attn", Joined(2, 3, Transposed())),
        f"{BLOCK}attention.output.weight": StoredAs("h.{i}.rel_attn.o", SplitHeads(outward=True)),
        f"{BLOCK}attention.output.bias": "h.{i}.rel_attn.o_bias",
        f"{BLOCK}feed_forward.up": StoredAs("h.{i}.mlp.c_fc", Transposed()),
    },
    **{"name": "forms", "model_type": "forms", "prefix": "transformer"},
)
SPEC = replace(
    BERT.sizes["tiny"],
    **{"vocab_size": 11, "hidden": 12, "embedding": 12, "heads": 3, "feed_forward": 20},
)


@given(SIZES, SIZES, SIZES)
def test_forms_go_there_and_back(width: int, heads: int, head_width: int) -> None:
    inward = torch.randn(heads * head_width, width)
    for form, ours, shape in (
        (Plain(), inward, inward.shape),
        (Transposed(), inward, (width, heads * head_width)),
        (Transposed(), inward[:, 0], (heads * head_width,)),
        (SplitHeads(), inward, (width, heads, head_width)),
        (SplitHeads(outward=True), inward.t(), (width, heads, head_width)),
    ):
        stored = form.to_stored(ours, heads)
        assert stored.shape == shape
        assert stored.is_contiguous()
        assert torch.equal(form.to_ours(stored), ours)


@given(SIZES, SIZES, st.integers(1, 4), st.booleans())
def test_parts_are_joined_and_cut(width: int, outputs: int, count: int, biases: bool) -> None:
    shape = (outputs,) if biases else (outputs, width)
    parts = [torch.randn(shape) for _ in range(count)]
    forms = [Joined(index, count, Transposed()) for index in range(count)]
    cut = [(form, form.to_stored(part, 1)) for form, part in zip(forms, parts, strict=True)]
    stored = join(cut[::-1])
    assert stored.shape == ((count * outputs,) if biases else (width, count * outputs))
    for form, part in zip(forms, parts, strict=True):
        assert torch.equal(form.to_ours(stored), part)


def test_xlnet_heads_are_those_of_its_einsum() -> None:
    stored, rows = torch.randn(5, 2, 3), torch.randn(4, 5)
    expected = torch.einsum("td,dhk->thk", rows, stored).flatten(1)
    torch.testing.assert_close(rows @ SplitHeads().to_ours(stored).t(), expected)
    back = torch.einsum("thk,dhk->td", expected.view(4, 2, 3), stored)
    ours = SplitHeads(outward=True).to_ours(stored)
    torch.testing.assert_close(expected @ ours.t(), back)


def test_a_family_with_such_forms_is_saved_and_loaded(tmp_path: Path) -> None:
    model = build(FORMS, SPEC, heads=["masked_lm"], generator=torch.Generator().manual_seed(1))
    state = published_state(model)
    assert state["transformer.h.1.attn.c_attn.weight"].shape == (12, 36)
    assert state["transformer.h.1.attn.c_attn.bias"].shape == (36,)
    assert state["transformer.h.0.rel_attn.o"].shape == (12, 3, 4)
    assert state["transformer.h.0.rel_attn.o_bias"].shape == (12,)
    assert state["transformer.h.0.mlp.c_fc.weight"].shape == (12, 20)
    save_model(model, None, tmp_path / "m")
    again = load_model(tmp_path / "m", variants=[FORMS]).model
    for (name, one), other in zip(model.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other), name
    state["transformer.h.1.attn.c_attn.weight"] = torch.zeros(12, 24)
    (tmp_path / "m" / SINGLE).unlink()
    write_tensors(tmp_path / "m" / SINGLE, state)
    with pytest.raises(TensorMismatchError, match=r"is \(12, 24\) and should be \(12, 36\)"):
        load_model(tmp_path / "m", variants=[FORMS])


def test_loading_builds_the_encoder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(build("bert", SPEC, heads=["masked_lm", "sequence"]), None, tmp_path / "m")
    built = []
    encoder = build_module._encoder
    monkeypatch.setattr(build_module, "_encoder", lambda spec: built.append(1) or encoder(spec))
    load_model(tmp_path / "m")
    assert len(built) == 1
