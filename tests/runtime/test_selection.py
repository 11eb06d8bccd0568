"""Which engine is chosen, from findings made up for the test."""

from dataclasses import replace

import pytest
import torch
from models_for_engines import random_model

from bertsmith.errors import HardwareError
from bertsmith.hardware.findings import Finding
from bertsmith.runtime import selection
from bertsmith.runtime.engines.kinds import ENGINE_KINDS
from bertsmith.runtime.selection import WORTH_PROBING, Selection, encode_flops


class FakeNative:
    budget, streams = 1024, 2

    def __init__(self, name):
        self.name = name


def finding(name, status="works", speed=4.0, error=4e-3):
    rates = {"a": 100.0 * speed} if status == "works" else {}
    return Finding(
        name=name,
        status=status,
        gflops=rates,
        fp32_gflops={"a": 100.0} if rates else {},
        error=error,
    )


@pytest.fixture
def world(monkeypatch):
    """A machine whose findings and cache the test decides."""

    class World:
        """Filled below."""

    def examine(names, *, fresh, budget, probes):
        if World.known and not fresh:
            return report()
        World.probed += 1
        World.built = True
        World.known = {name: World.truth[name] for name in names}
        return report()

    def report():
        return selection.MachineReport(
            machine=None, compiler=None, load=0.0, findings=tuple(World.known.values())
        )

    World.known, World.truth, World.probed, World.built = {}, {}, 0, True
    monkeypatch.setattr(selection, "cached", lambda name, probes: World.known.get(name))
    monkeypatch.setattr(selection, "examine", examine)
    monkeypatch.setattr(selection, "this_machine", lambda: None)
    World.kinds = {
        kind.name: replace(
            kind,
            build=lambda model, streams, name=kind.name: FakeNative(name),
            is_built=lambda: World.built,
        )
        for kind in ENGINE_KINDS.values()
    }
    return World


def select(world, precision="auto", shape="bert"):
    notes = []
    chosen = Selection(
        random_model(shape),
        device=torch.device("cpu"),
        precision=precision,
        threads=2,
        notice=notes.append,
        kinds=world.kinds,
    )
    return chosen, notes


BOTH_WORK = {
    "native_amx_bf16": finding("native_amx_bf16", speed=9.0),
    "native_avx512_bf16": finding("native_avx512_bf16"),
}
ONE_CRASHES = {
    "native_amx_bf16": finding("native_amx_bf16", "crashed SIGILL"),
    "native_avx512_bf16": finding("native_avx512_bf16"),
}
NONE_WORK = {
    "native_amx_bf16": finding("native_amx_bf16", "crashed SIGILL"),
    "native_avx512_bf16": finding("native_avx512_bf16", "absent"),
}
SLOWER = {
    "native_amx_bf16": finding("native_amx_bf16", "absent"),
    "native_avx512_bf16": finding("native_avx512_bf16", speed=0.6),
}


def test_a_machine_probed_before_gets_the_fastest_path_at_once(world):
    world.known = BOTH_WORK
    chosen, notes = select(world)
    assert chosen.engine.name == "native-amx-bf16"
    assert world.probed == 0
    assert notes == []


def test_a_crashed_probe_is_passed_over(world):
    world.known = ONE_CRASHES
    assert select(world)[0].engine.name == "native-avx512-bf16"


@pytest.mark.parametrize("known", [NONE_WORK, SLOWER])
def test_where_nothing_faster_works_torch_stays(world, known):
    world.known = known
    chosen, _ = select(world)
    assert chosen.prepare(1e30).name == "eager-fp32"
    assert world.probed == 0


def test_small_work_on_an_unknown_machine_does_not_pay_for_probing(world):
    world.truth = BOTH_WORK
    chosen, notes = select(world)
    assert chosen.prepare(WORTH_PROBING / 2).name == "eager-fp32"
    assert world.probed == 0
    assert notes == []


def test_large_work_probes_once_and_says_so(world):
    world.truth = BOTH_WORK
    chosen, notes = select(world)
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert world.probed == 1
    assert "once" in notes[0]
    assert notes[1] == "using native-amx-bf16: measured at 9.0 x fp32, error 4.0e-03"


def test_a_cleared_cache_is_built_again_only_for_large_work(world):
    world.known = world.truth = BOTH_WORK
    world.built = False
    chosen, _ = select(world)
    assert chosen.engine.name == "eager-fp32"
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert world.probed == 1


def test_fp32_is_never_replaced(world):
    world.known = world.truth = BOTH_WORK
    chosen, _ = select(world, "fp32")
    assert chosen.prepare(1e30).name == "eager-fp32"


def test_bf16_that_cannot_be_had_is_an_error_with_the_findings(world):
    world.truth = NONE_WORK
    chosen, _ = select(world, "bf16")
    for _ in range(2):
        with pytest.raises(HardwareError, match="native_amx_bf16: crashed SIGILL"):
            _ = chosen.engine


def test_who_insists_on_bf16_gets_it_also_where_it_is_slower(world):
    world.known = SLOWER
    chosen, notes = select(world, "bf16")
    assert chosen.engine.name == "native-avx512-bf16"
    assert notes == ["using native-avx512-bf16: set by the user; no faster than fp32 here"]


def test_a_path_that_is_too_coarse_is_not_given_to_those_who_insist(world):
    world.truth = {name: finding(name, error=0.1) for name in SLOWER}
    with pytest.raises(HardwareError, match="no bf16 path"):
        _ = select(world, "bf16")[0].engine


def test_a_selection_that_is_settled_moves_no_more(world):
    world.truth = BOTH_WORK
    chosen, _ = select(world)
    assert chosen.settle(WORTH_PROBING / 2).name == "eager-fp32"
    assert chosen.prepare(WORTH_PROBING * 2).name == "eager-fp32"
    assert world.probed == 0


def test_a_model_that_no_kind_runs_is_refused_by_its_reason(world):
    world.known = BOTH_WORK
    world.kinds = {
        name: replace(kind, why_not=lambda spec: f"it has {spec.layers} layers")
        for name, kind in world.kinds.items()
    }
    assert select(world)[0].prepare(1e30).name == "eager-fp32"
    with pytest.raises(HardwareError, match="runs this model: it has 3 layers"):
        _ = select(world, "bf16")[0].engine


def test_work_is_counted_in_multiplications_and_additions():
    spec = random_model("bert").spec
    by_hand = 10 * 3 * (8 * 96**2 + 4 * 96 * 160 + 4 * 96 * 20)
    assert encode_flops(spec, 10, 20) == by_hand
