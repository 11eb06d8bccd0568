from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertsmith.errors import ConfigError
from bertsmith.models import albert, bert, electra, nezha, roberta
from bertsmith.models.build import Model, build
from bertsmith.models.neighbors import STEPS, look_at_neighbors
from bertsmith.models.variant import sized
from bertsmith.nn.encoder import Want
from bertsmith.nn.layout import Layout

LENGTH = 40


def fresh(module, hidden: int = 256, embedding: int | None = None) -> Model:
    spec = sized(replace(module.SPEC, vocab_size=500), 2, hidden, embedding=embedding)
    name = module.__name__.rpartition(".")[2]
    return build(name, spec, generator=torch.Generator().manual_seed(3)).eval()


def looks(model: Model) -> torch.Tensor:
    """How far from itself each token looks most, by head of the first block: (H, L)."""
    ids = torch.randint(5, 500, (LENGTH,), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        found = model(ids, Layout.of([LENGTH]), want=Want(attention=True)).attention[0][0]
    return found.argmax(-1) - torch.arange(LENGTH)


@pytest.mark.parametrize(
    ("module", "embedding"), [(bert, None), (roberta, None), (albert, 128), (electra, 128)]
)
def test_heads_of_a_fresh_model_look_at_their_neighbors(module, embedding) -> None:
    model = fresh(module, embedding=embedding)
    before = [(looks(model)[head] == step).float().mean() for head, step in enumerate(STEPS[:2])]
    look_at_neighbors(model.encoder)
    found = looks(model)
    inner = slice(2, LENGTH - 2)
    for head, step in enumerate(STEPS[:2]):
        assert before[head] < 0.2
        assert (found[head, inner] == step).float().mean() > 0.9
    for head in range(2, found.shape[0]):  # the others stay free
        assert found[head].float().std() > 3


def test_a_single_head_looks_back() -> None:
    model = fresh(bert, hidden=64)
    look_at_neighbors(model.encoder)
    assert (looks(model)[0, 2:-2] == -1).float().mean() > 0.5


def test_relative_positions_know_their_neighbors_already() -> None:
    with pytest.raises(ConfigError, match=r"model\.start"):
        look_at_neighbors(fresh(nezha).encoder)
