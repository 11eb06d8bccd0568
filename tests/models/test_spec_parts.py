"""Parts of a spec that no published variant here has: pre-norm blocks, further channels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models import VARIANTS
from bertsmith.models.build import Model, build
from bertsmith.models.spec import Spec
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Layout
from bertsmith.runtime.engines.native import why_not

TINY = replace(VARIANTS["bert"].sizes["tiny"], vocab_size=30, dropout=0.0, attention_dropout=0.0)
PARTS = {
    "pre-norm": replace(TINY, norm="before"),
    "channels": replace(TINY, channels=(("task", 4), ("tags", 3))),
    "both": replace(TINY, norm="before", channels=(("task", 4),)),
}


def inputs(spec: Spec, task: int = 2) -> Inputs:
    ids = torch.tensor([1, 5, 9, 2, 1, 7, 2])
    channels = {"task": torch.full((7,), task)} if spec.channels else {}
    return Inputs(ids, Layout.of([4, 3]), channels)


def made(spec: Spec) -> Model:
    return build("bert", spec, heads=["masked_lm"], generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", PARTS)
def test_every_weight_gets_a_gradient_and_the_folder_comes_back(name: str, tmp_path: Path) -> None:
    spec = replace(PARTS[name], pooler=False)
    model = made(spec)
    logits = model.logits("masked_lm", model(inputs(spec)).hidden)
    torch.nn.functional.cross_entropy(logits, torch.arange(7)).backward()
    silent = [label for label, one in model.named_parameters() if one.grad is None]
    assert not silent
    save_model(model.eval(), None, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    assert again.spec == spec
    assert torch.equal(again(inputs(spec)).hidden, model(inputs(spec)).hidden)


def test_a_channel_changes_the_vectors_and_row_0_stands_for_none() -> None:
    spec = PARTS["channels"]
    model = made(spec).eval()
    plain = Inputs(inputs(spec).ids, inputs(spec).layout)
    with torch.no_grad():
        assert not torch.equal(model(inputs(spec, 1)).hidden, model(inputs(spec, 2)).hidden)
        torch.testing.assert_close(model(inputs(spec, 0)).hidden, model(plain).hidden)


def test_a_pre_norm_model_ends_with_a_norm() -> None:
    model = made(PARTS["pre-norm"]).eval()
    with torch.no_grad():
        hidden = model(inputs(TINY)).hidden
    torch.testing.assert_close(hidden.mean(-1), torch.zeros(7), atol=1e-5, rtol=0)
    assert model.encoder.norm is not None
    assert made(TINY).encoder.norm is None


def test_what_the_native_kernel_cannot_run_is_refused() -> None:
    assert not why_not(TINY)
    assert "norms" in why_not(PARTS["pre-norm"])
    assert "channels" in why_not(PARTS["channels"])


def test_channels_need_names_and_rows() -> None:
    for channels in ((("task", 0),), (("task", 2), ("task", 3))):
        with pytest.raises(ConfigError, match="channels"):
            replace(TINY, channels=channels)
