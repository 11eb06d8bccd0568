from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model, build
from bertsmith.models.init import STEPS, look_at_neighbors
from bertsmith.models.variant import sized
from bertsmith.models.variants import albert, bert, electra, nezha, roberta
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.encoder import Want

LENGTH = 40


def fresh(module, hidden: int = 256, embedding: int | None = None) -> Model:
    spec = sized(replace(module.SPEC, vocab_size=500), 2, hidden, embedding=embedding)
    name = module.__name__.rpartition(".")[2]
    return build(name, spec, generator=torch.Generator().manual_seed(3)).eval()


def attention(model: Model) -> torch.Tensor:
    """What the heads of the first block look at: (H, L, L)."""
    ids = torch.randint(5, 500, (LENGTH,), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        return model(Inputs(ids, Layout.of([LENGTH])), want=Want(attention=True)).attention[0][0]


def shares(model: Model) -> list[float]:
    """The attention that the first two heads pay to the token before and the one after."""
    found = attention(model)
    return [found[head].diagonal(step).mean().item() for head, step in enumerate(STEPS[:2])]


@pytest.mark.parametrize(
    ("module", "embedding"), [(bert, None), (roberta, None), (albert, 128), (electra, 128)]
)
def test_heads_of_a_fresh_model_look_at_their_neighbors(module, embedding) -> None:
    model = fresh(module, embedding=embedding)
    assert max(shares(model)) < 0.1
    look_at_neighbors(model)
    assert min(shares(model)) > 0.45
    for head in attention(model)[2:]:  # the others stay free
        assert (head.argmax(-1) - torch.arange(LENGTH)).float().std() > 3


@pytest.mark.parametrize("hidden", [64, 256])
def test_a_narrow_embedding_comes_out_as_long_as_it_was(hidden) -> None:
    model = fresh(albert, hidden=hidden, embedding=128)
    look_at_neighbors(model)
    sizes = torch.linalg.svdvals(model.encoder.embeddings.project.weight)
    torch.testing.assert_close(sizes, torch.ones(min(hidden, 128)))


def test_a_single_head_looks_back() -> None:
    model = fresh(bert, hidden=64)
    look_at_neighbors(model)
    found = attention(model)[0].argmax(-1) - torch.arange(LENGTH)
    assert (found[2:-2] == -1).float().mean() > 0.5


def test_relative_positions_know_their_neighbors_already() -> None:
    with pytest.raises(ConfigError, match=r"model\.init"):
        look_at_neighbors(fresh(nezha))
