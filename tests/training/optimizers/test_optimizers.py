"""Optimizers: who decays, LAMB and Muon against plain sums, states that survive a round trip."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn
from toy_training import ToyModel

from bertsmith.errors import TensorMismatchError
from bertsmith.training.optimizers.lamb import Lamb
from bertsmith.training.optimizers.muon import Muon, orthogonal
from bertsmith.training.optimizers.optimizers import (
    AdamWSettings,
    LambSettings,
    MuonSettings,
    OptimizerSettings,
    build_optimizer,
)

EVERY = [AdamWSettings(lr=1e-2), LambSettings(lr=1e-2), MuonSettings(lr=1e-2)]


def set_gradients(model: nn.Module, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=rng)


@pytest.mark.parametrize("settings", EVERY, ids=lambda s: s.name)
def test_every_parameter_is_stepped_once_and_only_matrices_decay(settings: object) -> None:
    model = ToyModel()
    optimizers = build_optimizer(model, settings)
    seen = []
    for part in optimizers.parts.values():
        for group in part.param_groups:
            for parameter in group["params"]:
                seen.append(id(parameter))
                assert (group["weight_decay"] > 0) == (parameter.dim() > 1)
    assert sorted(seen) == sorted(id(p) for p in model.parameters())


def test_muon_takes_mixing_matrices_and_leaves_tables_and_narrow_outputs() -> None:
    model = ToyModel()
    muon = build_optimizer(model, MuonSettings()).parts["muon"]
    assert [id(p) for p in muon.param_groups[0]["params"]] == [id(model.dense.weight)]


@pytest.mark.parametrize("settings", EVERY, ids=lambda s: s.name)
def test_a_saved_and_loaded_state_goes_on_bit_for_bit(settings: object) -> None:
    straight, broken = ToyModel(), ToyModel()
    one, two = build_optimizer(straight, settings), build_optimizer(broken, settings)
    for step in range(4):
        for model, optimizers in ((straight, one), (broken, two)):
            set_gradients(model, step)
            optimizers.set_rate(0.5)
            optimizers.step()
        if step == 1:
            stored = {name: tensor.clone() for name, tensor in two.state().items()}
            two = build_optimizer(broken, settings)
            two.load(stored)
            assert two.state().keys() == stored.keys()
    for a, b in zip(straight.parameters(), broken.parameters(), strict=True):
        assert torch.equal(a, b)
    for name, tensor in one.state().items():
        assert torch.equal(tensor, two.state()[name]), name


def test_the_state_of_another_model_is_refused_by_name() -> None:
    optimizers = build_optimizer(ToyModel(), AdamWSettings())
    with pytest.raises(TensorMismatchError, match="adamw:exp_avg:elsewhere"):
        optimizers.load({"adamw:exp_avg:elsewhere": torch.zeros(1)})


def test_rates_are_shares_of_their_peaks() -> None:
    optimizers = build_optimizer(ToyModel(), MuonSettings(lr=2e-2, rest_lr=1e-3))
    optimizers.set_rate(0.25)
    rates = {n: part.param_groups[0]["lr"] for n, part in optimizers.parts.items()}
    assert rates == pytest.approx({"muon": 5e-3, "adamw": 2.5e-4})
    optimizers.set_rate(1.0)
    assert optimizers.rate == pytest.approx(2e-2)


def lamb_by_hand(weight: Tensor, grads: list[Tensor], *, decay: float, trust: bool) -> Tensor:
    """Algorithm 2 of the paper, one tensor, in float64."""
    w = weight.double()
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    for t, grad in enumerate(grads, start=1):
        g = grad.double()
        m = 0.9 * m + 0.1 * g
        v = 0.98 * v + 0.02 * g * g
        r = (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-6) + decay * w
        ratio = float(w.norm() / r.norm()) if trust and w.norm() > 0 and r.norm() > 0 else 1.0
        w = w - 0.01 * ratio * r
    return w


@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("start", ["random", "zero"])
def test_lamb_is_algorithm_two_of_its_paper(trust: bool, start: str) -> None:
    weight = nn.Parameter(torch.randn(5, 7) if start == "random" else torch.zeros(5, 7))
    grads = [torch.randn(5, 7) for _ in range(6)]
    expected = lamb_by_hand(weight.detach().clone(), grads, decay=0.1, trust=trust)
    optimizer = Lamb([weight], lr=0.01, betas=(0.9, 0.98), weight_decay=0.1, trust=trust)
    for grad in grads:
        weight.grad = grad.clone()
        optimizer.step()
    torch.testing.assert_close(weight.detach().double(), expected, rtol=1e-5, atol=1e-6)


def test_lamb_gives_biases_and_norms_adams_step() -> None:
    lamb = build_optimizer(ToyModel(), LambSettings()).parts["lamb"]
    for group in lamb.param_groups:
        for parameter in group["params"]:
            assert group["trust"] == (parameter.dim() > 1)


@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (32, 32)])
def test_orthogonalized_matrices_have_singular_values_near_one(shape: tuple[int, int]) -> None:
    values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
    assert float(values.min()) > 0.3
    assert float(values.max()) < 1.3


def test_muon_never_multiplies_in_bf16_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tensor: Tensor) -> Tensor:
        raise AssertionError("a bf16 product ends the process on some machines")

    monkeypatch.setattr(Tensor, "bfloat16", refuse)
    weight = nn.Parameter(torch.randn(16, 48))
    before = weight.detach().clone()
    optimizer = Muon([weight], lr=0.1, weight_decay=0.5, adjust_lr_fn="match_rms_adamw")
    grad = torch.randn(16, 48)
    weight.grad = grad.clone()
    optimizer.step()
    momentum = 0.05 * grad
    update = orthogonal(0.05 * grad + 0.95 * momentum)
    expected = before * (1 - 0.1 * 0.5) - 0.1 * 0.2 * math.sqrt(48) * update
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-4, atol=1e-5)


def test_settings_read_lists_and_refuse_what_they_do_not_know() -> None:
    read = TypeAdapter(OptimizerSettings).validate_python
    assert read({"name": "lamb", "betas": [0.9, 0.95], "lr": 1}).betas == (0.9, 0.95)
    for wrong in (
        {"name": "sgd"},
        {"name": "adamw", "momentum": 0.9},
        {"name": "adamw", "lr": "1e-4"},
        {"name": "adamw", "lr": math.nan},
        {"name": "adamw", "betas": [0.9, 1.0]},
        {"name": "adamw", "clip": 0},
    ):
        with pytest.raises(ValidationError):
            read(wrong)
