"""The C++ kernel against the eager engine, on every shape it claims to run."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from models_for_engines import SHAPES, random_model, random_texts

from bertsmith.errors import HardwareError, TextError
from bertsmith.hardware.kernels.tiers import TIERS
from bertsmith.hardware.machine import this_machine
from bertsmith.hardware.report import examine
from bertsmith.models.positions import FunctionalRelative
from bertsmith.nn import Causal
from bertsmith.runtime.engines.batches import pack_rows
from bertsmith.runtime.engines.engine import EagerEngine
from bertsmith.runtime.engines.kinds import engine_probes
from bertsmith.runtime.engines.native import encoder_kernel, why_not
from bertsmith.runtime.engines.native.engine import NativeEngine

LENGTHS = (1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 95, 130, 200)
CLOSE = 8e-3  # bf16 keeps 8 bits: 2^-9 a rounding, and some layers of them


@pytest.fixture(scope="module")
def machine():
    """Only where the probe, in a child process, found the instructions to work."""
    finding = examine(["native_avx512_bf16"], probes=engine_probes()).findings[0]
    if not finding.works:
        pytest.skip(f"this machine has no AVX-512 bf16 kernel: {finding.status}")
    return finding


def relative(mine, true):
    return float((mine - true).norm() / true.norm())


@pytest.mark.parametrize("tier", ["avx512-bf16", "amx-bf16-emulated"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_equal_the_eager_rows_within_bf16(machine, tier, shape):
    model = random_model(shape)
    eager = EagerEngine(model.encoder, device=torch.device("cpu"), dtype=torch.float32)
    native = NativeEngine(model.encoder, model.spec, tier=tier, streams=1)
    lengths = LENGTHS if tier == "avx512-bf16" else LENGTHS[:10]
    (batch,) = pack_rows(random_texts(lengths), budget=10_000)
    mine, true = native.hidden(batch), eager.hidden(batch)
    for first, last in zip(batch.starts, batch.starts[1:], strict=False):
        assert relative(mine[first:last], true[first:last]) < CLOSE


@pytest.mark.parametrize("tier", ["avx2-fp32", "avx512-fp32"])
def test_the_same_sources_are_exact_in_fp32_at_both_widths(tier):
    """No kind of engine offers these tiers yet; number format and vector width are apart."""
    lacking = set(TIERS[tier].flags) - set(this_machine().flags)
    if lacking:
        pytest.skip(f"this processor has no {', '.join(sorted(lacking))}")
    for shape in SHAPES:
        model = random_model(shape)
        eager = EagerEngine(model.encoder, device=torch.device("cpu"), dtype=torch.float32)
        native = NativeEngine(model.encoder, model.spec, tier=tier, streams=1)
        assert native.name == f"native-{tier}"
        (batch,) = pack_rows(random_texts(LENGTHS), budget=10_000)
        assert relative(native.hidden(batch), eager.hidden(batch)) < 2e-6


@pytest.mark.parametrize("tier", ["avx512-bf16", "amx-bf16-emulated"])
def test_the_parts_of_pairs_are_told_apart(machine, tier):
    model = random_model("bert")
    eager = EagerEngine(model.encoder, device=torch.device("cpu"), dtype=torch.float32)
    native = NativeEngine(model.encoder, model.spec, tier=tier, streams=1)
    (plain,) = pack_rows(random_texts([9, 33, 17]), budget=10_000)
    pairs = replace(
        plain, channels={"segments": (np.arange(len(plain.ids)) % 7 > 3).astype(np.int32)}
    )
    assert relative(native.hidden(pairs), eager.hidden(pairs)) < CLOSE
    assert relative(native.hidden(plain), eager.hidden(pairs)) > 4 * CLOSE


@pytest.mark.parametrize(
    ("segments", "said"),
    [([0, 2, 1], "outside of the 2"), ([0, -1, 1], "outside of the 2"), ([0, 1], "like the ids")],
)
def test_wrong_segments_never_reach_the_kernel(machine, segments, said):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows(random_texts([3]), budget=10)
    with pytest.raises(TextError, match=said):
        native.hidden(replace(batch, channels={"segments": np.array(segments)}))


@pytest.mark.parametrize(
    "change",
    [{"sees": Causal()}, {"positions": np.arange(3)}, {"channels": {"tasks": np.zeros(3)}}],
)
def test_what_the_kernel_cannot_read_is_refused(machine, change):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows(random_texts([3]), budget=10)
    with pytest.raises(HardwareError, match="ids and segments only"):
        native.hidden(replace(batch, **change))


def test_neighbors_in_a_batch_change_nothing(machine):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    ids = random_texts(LENGTHS)
    (together,) = pack_rows(ids, budget=10_000)
    rows = native.hidden(together)
    for place, number in enumerate(together.texts):
        (alone,) = pack_rows([ids[number]], budget=10_000)
        part = rows[together.starts[place] : together.starts[place + 1]]
        assert torch.equal(part, native.hidden(alone))


def test_threads_do_not_disturb_each_other(machine):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=4)
    batches = [pack_rows(random_texts([n, n + 5]), budget=999)[0] for n in range(1, 40)]
    alone = [native.hidden(batch) for batch in batches]
    results = [None] * len(batches)

    def work(offset):
        for number in range(offset, len(batches), 4):
            results[number] = native.hidden(batches[number])

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(mine, true) for mine, true in zip(results, alone, strict=True))


def test_a_text_of_every_position_is_right(machine):
    model = random_model("bert")
    eager = EagerEngine(model.encoder, device=torch.device("cpu"), dtype=torch.float32)
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows(random_texts([512]), budget=10_000)
    assert relative(native.hidden(batch), eager.hidden(batch)) < CLOSE


@pytest.mark.parametrize("bad", [-1, 211, 2**31 - 1])
def test_an_id_outside_of_the_vocabulary_never_reaches_the_kernel(machine, bad):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows([np.array([1, bad, 2], dtype=np.int32)], budget=10)
    with pytest.raises(TextError, match="outside of the vocabulary of 211"):
        native.hidden(batch)


def test_a_text_longer_than_the_positions_is_refused(machine):
    model = random_model("bert")
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows(random_texts([513]), budget=10)
    with pytest.raises(TextError, match="513 tokens does not fit 512"):
        native.hidden(batch)


def test_extreme_activations_stay_finite(machine):
    model = random_model("bert")
    with torch.no_grad():
        for block in model.encoder.blocks:
            block.feed_forward.up.weight.mul_(1000.0)
            block.attention.query.weight.mul_(1000.0)
    native = NativeEngine(model.encoder, model.spec, tier="avx512-bf16", streams=1)
    (batch,) = pack_rows(random_texts(LENGTHS), budget=10_000)
    assert torch.isfinite(native.hidden(batch)).all()


def test_shapes_the_kernel_lacks_are_refused_by_name(machine):
    model = random_model("bert")
    odd = replace(model.spec, hidden=24, embedding=24)
    assert "hidden size 24" in why_not(odd)
    assert "relative positions" in why_not(replace(model.spec, positions=FunctionalRelative()))
    assert "tanh" in why_not(replace(model.spec, activation="tanh"))
    with pytest.raises(HardwareError, match="hidden size 24"):
        NativeEngine(model.encoder, odd, tier="avx512-bf16", streams=1)


def test_the_second_start_does_not_compile_again(machine, monkeypatch):
    before = encoder_kernel("avx512-bf16").library()
    monkeypatch.setenv("CXX", "/nonexistent/compiler")
    assert encoder_kernel("avx512-bf16").library() == before


def test_a_library_that_others_could_write_is_not_loaded(machine, tmp_path, monkeypatch):
    content = encoder_kernel("avx512-bf16").library().read_bytes()
    monkeypatch.setenv("BERTSMITH_CACHE", str(tmp_path))
    place = tmp_path / "native"
    place.mkdir()
    planted = place / library_name()
    planted.write_bytes(content)
    planted.chmod(0o666)
    with pytest.raises(HardwareError, match="can be written by others"):
        encoder_kernel("avx512-bf16").library()


def library_name():
    return encoder_kernel("avx512-bf16").place.name


def test_the_probe_reports_error_and_speed(machine):
    assert 0.0 < machine.error < 1e-2
    assert math.isfinite(machine.speedup)
    assert set(machine.gflops) == set(machine.fp32_gflops)
