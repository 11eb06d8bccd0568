from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from rounded_products import Rounded
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.errors import HardwareError
from bertsmith.hardware.findings import CRASHED, WORKS, Finding
from bertsmith.hardware.machine import this_machine
from bertsmith.hardware.report import MachineReport, examine
from bertsmith.models.build import Model, build
from bertsmith.models.variant import sized
from bertsmith.models.variants import bert
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.matmul_backends import BackendLinear, products_of, use_products
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.training.execution import precision
from bertsmith.training.execution.precision import (
    FP32,
    MKL_BF16,
    ONEDNN_FP32,
    TORCH_BF16,
    MklProducts,
    OneDnnProducts,
    PrecisionPath,
    choose_precision,
)

CPU = torch.device("cpu")
WORDS = 300


def works(probe: str) -> bool:
    """Whether a probe, in a process of its own, found a path right here."""
    return examine([probe]).findings[0].works


def report(**found: tuple[str, float, float]) -> MachineReport:
    """A machine whose probes ended so: status, speed against fp32, error."""
    findings = tuple(
        Finding(name=name, status=status, gflops={"a": speed}, fp32_gflops={"a": 1.0}, error=error)
        for name, (status, speed, error) in found.items()
    )
    return MachineReport(machine=this_machine(), compiler=None, load=0.0, findings=findings)


def plant(monkeypatch: pytest.MonkeyPatch, **found: tuple[str, float, float]) -> None:
    monkeypatch.setattr(precision, "examine", lambda _: report(**found))


FAST = (WORKS, 2.5, 4e-3)
SLOW = (WORKS, 0.6, 4e-3)
DEAD = (f"{CRASHED} SIGILL", 0.0, 1.0)


def test_auto_takes_the_fastest_right_path(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, mkl_bf16=FAST, bf16_onednn=DEAD)
    assert choose_precision("auto", CPU).name == MKL_BF16
    plant(monkeypatch, mkl_bf16=SLOW, bf16_onednn=FAST)
    assert choose_precision("auto", CPU).name == TORCH_BF16


def test_auto_stays_with_fp32_where_bf16_traps_or_crawls(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, mkl_bf16=SLOW, bf16_onednn=DEAD)
    assert choose_precision("auto", CPU).name == FP32


def test_bf16_asked_for_by_name_is_used_if_right_and_refused_if_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch, mkl_bf16=SLOW, bf16_onednn=DEAD)
    assert choose_precision("bf16", CPU).name == MKL_BF16
    plant(monkeypatch, mkl_bf16=DEAD, bf16_onednn=DEAD)
    with pytest.raises(HardwareError, match="train with run"):
        choose_precision("bf16", CPU)


def test_a_resumed_run_keeps_its_path_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, mkl_bf16=FAST, bf16_onednn=SLOW)
    assert choose_precision("auto", CPU, before=TORCH_BF16).name == TORCH_BF16
    assert choose_precision("auto", CPU, before=FP32).name == FP32
    plant(monkeypatch, mkl_bf16=FAST, bf16_onednn=DEAD)
    with pytest.raises(HardwareError, match="begun with torch-bf16"):
        choose_precision("auto", CPU, before=TORCH_BF16)


def test_fp32_takes_the_faster_library_and_no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, fp32_onednn=(WORKS, 1.3, 4e-7), bf16_onednn=FAST)
    assert choose_precision("fp32", CPU).name == ONEDNN_FP32
    plant(monkeypatch, fp32_onednn=(WORKS, 1.05, 4e-7), bf16_onednn=FAST)
    assert choose_precision("fp32", CPU).name == FP32
    plant(monkeypatch, fp32_onednn=DEAD, bf16_onednn=FAST)
    assert choose_precision("fp32", CPU).name == FP32


def test_fp32_begun_with_one_library_goes_on_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "examine", lambda _: pytest.fail("a probe was run"))
    assert choose_precision("fp32", CPU, before=FP32).name == FP32
    plant(monkeypatch, fp32_onednn=(WORKS, 0.9, 4e-7), bf16_onednn=FAST)
    for wanted in ("fp32", "auto"):
        assert choose_precision(wanted, CPU, before=ONEDNN_FP32).name == ONEDNN_FP32
    plant(monkeypatch, fp32_onednn=DEAD, bf16_onednn=FAST)
    assert choose_precision("fp32", CPU, before=ONEDNN_FP32).name == FP32  # to be accepted by name
    with pytest.raises(HardwareError, match="begun with onednn-fp32"):
        choose_precision("auto", CPU, before=ONEDNN_FP32)


def test_bf16_asked_for_is_never_answered_with_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, fp32_onednn=(WORKS, 1.3, 4e-7), bf16_onednn=SLOW)
    assert choose_precision("bf16", CPU).name == TORCH_BF16
    assert choose_precision("auto", CPU).name == ONEDNN_FP32


def test_on_this_machine_the_choice_never_kills_training() -> None:
    path = choose_precision("auto", CPU)
    assert all(torch.isfinite(torch.tensor(curve(path.name, steps=3))))


def test_a_switched_layer_keeps_object_names_and_fp32_parameters() -> None:
    layer = nn.Linear(64, 96)
    before = dict(layer.named_parameters())
    use_products(layer, Rounded())
    assert isinstance(layer, BackendLinear)
    assert all(one is before[name] for name, one in layer.named_parameters())
    rows = torch.randn(10, 64, requires_grad=True)
    plain = F.linear(rows, layer.weight, layer.bias)
    expected = torch.autograd.grad(plain.square().sum(), (rows, layer.weight, layer.bias))
    found = torch.autograd.grad(layer(rows).square().sum(), (rows, layer.weight, layer.bias))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert 0 < float((one - other).norm() / other.norm()) < 1e-2
    with torch.no_grad():
        assert torch.equal(layer(rows), plain)


def test_fused_steps_are_seen_at_once() -> None:
    """AdamW(fused=True) leaves a tensor's version as it was: a cache would train on old weights."""
    layer = nn.Linear(64, 64)
    use_products(layer, Rounded())
    rows = torch.randn(8, 64)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    before = layer(rows)
    before.square().sum().backward()
    optimizer.step()
    after = layer(rows)
    expected = F.linear(rows, layer.weight, layer.bias)
    assert not torch.allclose(before, after, atol=0.1)
    torch.testing.assert_close(after, expected, rtol=2e-2, atol=2e-2)


def test_only_wide_layers_and_the_vocabulary_are_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_products", lambda _: Rounded())
    model = toy()
    PrecisionPath(name=TORCH_BF16, reason="").prepare(model)
    switched = {name for name, m in model.named_modules() if isinstance(m, BackendLinear)}
    assert "encoder.blocks.1.attention.query" in switched
    assert "encoder.blocks.0.feed_forward.down" in switched
    assert not any("next_sentence" in name and name.endswith("output") for name in switched)
    assert products_of(model.encoder.embeddings.tokens.weight) is None
    loss_of(model)
    assert isinstance(products_of(model.encoder.embeddings.tokens.weight), Rounded)


def test_mkl_gives_the_three_products_in_fp32() -> None:
    if not works("mkl_bf16"):
        pytest.skip("MKL's bf16 product does not work on this machine")
    products = MklProducts()
    rng = torch.Generator().manual_seed(1)
    rows = torch.randn(37, 65, generator=rng).bfloat16()
    weight = torch.randn(130, 65, generator=rng).bfloat16()
    gradient = torch.randn(37, 130, generator=rng).bfloat16()
    bias = torch.randn(130, generator=rng)
    into = torch.ones(130, 65)
    wanted = {
        "forward": F.linear(rows.float(), weight.float(), bias),
        "rows": gradient.float() @ weight.float(),
        "weight": gradient.float().t() @ rows.float(),
    }
    found = {
        "forward": products.forward(rows, weight, bias),
        "rows": products.rows_gradient(gradient, weight),
        "weight": products.weight_gradient(gradient, rows),
    }
    for name, expected in wanted.items():
        torch.testing.assert_close(found[name], expected, rtol=1e-5, atol=1e-4)
    products.weight_gradient(gradient, rows, into)
    torch.testing.assert_close(into, wanted["weight"] + 1, rtol=1e-5, atol=1e-4)
    assert products.forward(rows[:0], weight, bias).shape == (0, 130)


def test_onednn_gives_the_three_products_of_torch() -> None:
    if not works("fp32_onednn"):
        pytest.skip("oneDNN's fp32 product does not work on this machine")
    products = OneDnnProducts()
    rng = torch.Generator().manual_seed(1)
    for count in (1, 37, 300):
        rows = torch.randn(count, 65, generator=rng)
        weight = torch.randn(130, 65, generator=rng)
        gradient = torch.randn(count, 260, generator=rng)[:, ::2]
        bias = torch.randn(130, generator=rng)
        exact = rows.double(), weight.double(), gradient.double(), bias.double()
        wanted = (
            (products.forward(rows, weight, bias), exact[0] @ exact[1].t() + exact[3]),
            (products.forward(rows, weight, None), exact[0] @ exact[1].t()),
            (products.rows_gradient(gradient, weight), exact[2] @ exact[1]),
            (products.weight_gradient(gradient, rows), exact[2].t() @ exact[0]),
        )
        for found, right in wanted:
            assert found.is_contiguous()
            torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)
    assert products.forward(rows[:0], weight, bias).shape == (0, 130)
    assert products.rows_gradient(gradient[:0], weight).shape == (0, 65)


def test_onednn_trains_as_torch_does() -> None:
    if not works("fp32_onednn"):
        pytest.skip("oneDNN's fp32 product does not work on this machine")
    plain, other = curve(FP32, steps=50), curve(ONEDNN_FP32, steps=50)
    assert other == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize(("path", "probe"), [(TORCH_BF16, "bf16_onednn"), (MKL_BF16, "mkl_bf16")])
def test_two_hundred_steps_end_within_half_a_percent_of_fp32(path: str, probe: str) -> None:
    if not works(probe):
        pytest.skip(f"{probe} does not work on this machine")
    plain, narrow = curve(FP32, steps=200), curve(path, steps=200)
    assert plain[-1] < 0.9 * plain[0]
    assert narrow[-1] == pytest.approx(plain[-1], rel=5e-3)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_large_tensors_come_from_memory_that_the_process_keeps() -> None:
    program = (
        "import ctypes, sys, torch\n"
        "from bertsmith.training.execution.execution import keep_freed_memory\n"
        "if sys.argv[1] == 'keep': assert keep_freed_memory()\n"
        "held = torch.zeros(64 << 18)\n"  # 64 MB, far above the size that is mapped anew by default
        "mallinfo = ctypes.CDLL(None).mallinfo2\n"
        "mallinfo.restype = type('Info', (ctypes.Structure,), {'_fields_': [\n"
        "    (name, ctypes.c_size_t) for name in 'arena ordblks smblks hblks hblkhd'.split()\n"
        "] + [('rest', ctypes.c_size_t * 5)]})\n"
        "print(mallinfo().hblkhd)\n"  # bytes in mapped blocks, given back when freed
    )
    mapped = {
        how: int(
            subprocess.run(
                [sys.executable, "-c", program, how], capture_output=True, text=True, check=True
            ).stdout
        )
        for how in ("keep", "default")
    }
    assert mapped["default"] >= 64 << 20
    assert mapped["keep"] < 64 << 20


def toy() -> Model:
    shape = replace(bert.SPEC, vocab_size=WORDS, dropout=0.0, attention_dropout=0.0)
    generator = torch.Generator().manual_seed(2)
    heads = ["masked_lm", "next_sentence"]
    return build("bert", sized(shape, 2, 64), heads=heads, generator=generator)


def loss_of(model: Model, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, WORDS, (64,), generator=rng)
    rows = torch.arange(0, 64, 4)
    hidden = model(Inputs(ids // 3, Layout.of([16] * 4)), rows=rows).hidden
    head = model.heads["masked_lm"]
    read = head.norm(head.activation(head.dense(hidden)))
    weight = model.encoder.embeddings.tokens.weight
    return vocabulary_loss(read, weight, head.bias, ids[rows])[0].sum / len(rows)


def curve(path: str, *, steps: int) -> list[float]:
    model = toy()
    PrecisionPath(name=path, reason="").prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step % 20)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
