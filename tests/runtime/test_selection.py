"""Which engine is chosen, from findings made up for the test."""

import pytest
import torch
from models_for_engines import random_model

from bertsmith.errors import HardwareError
from bertsmith.hardware.findings import Finding
from bertsmith.runtime import selection
from bertsmith.runtime.selection import WORTH_PROBING, Selection, encode_flops


class FakeNative:
    budget, streams = 1024, 2

    def __init__(self, encoder, spec, *, tier, streams):
        self.name = f"native-{tier}-bf16"


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
    monkeypatch.setattr(selection, "is_built", lambda tier: World.built)
    monkeypatch.setattr(selection, "NativeEngine", FakeNative)
    return World


def select(precision="auto", shape="bert"):
    said = []
    chosen = Selection(
        random_model(shape),
        device=torch.device("cpu"),
        precision=precision,
        threads=2,
        notice=said.append,
    )
    return chosen, said


BOTH_WORK = {
    "native_amx": finding("native_amx", speed=9.0),
    "native_avx512": finding("native_avx512"),
}
ONE_CRASHES = {
    "native_amx": finding("native_amx", "crashed SIGILL"),
    "native_avx512": finding("native_avx512"),
}
NONE_WORK = {
    "native_amx": finding("native_amx", "crashed SIGILL"),
    "native_avx512": finding("native_avx512", "absent"),
}
SLOWER = {
    "native_amx": finding("native_amx", "absent"),
    "native_avx512": finding("native_avx512", speed=0.6),
}


def test_a_machine_probed_before_gets_the_fastest_path_at_once(world):
    world.known = BOTH_WORK
    chosen, said = select()
    assert chosen.engine.name == "native-amx-bf16"
    assert world.probed == 0
    assert said == []


def test_a_crashed_probe_is_passed_over(world):
    world.known = ONE_CRASHES
    assert select()[0].engine.name == "native-avx512-bf16"


@pytest.mark.parametrize("known", [NONE_WORK, SLOWER])
def test_where_nothing_faster_works_torch_stays(world, known):
    world.known = known
    chosen, _ = select()
    assert chosen.prepare(1e30).name == "eager-fp32"
    assert world.probed == 0


def test_small_work_on_an_unknown_machine_does_not_pay_for_probing(world):
    world.truth = BOTH_WORK
    chosen, said = select()
    assert chosen.prepare(WORTH_PROBING / 2).name == "eager-fp32"
    assert world.probed == 0
    assert said == []


def test_large_work_probes_once_and_says_so(world):
    world.truth = BOTH_WORK
    chosen, said = select()
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert world.probed == 1
    assert "once" in said[0]
    assert said[1] == "using native-amx-bf16: measured at 9.0 x fp32, error 4.0e-03"


def test_a_cleared_cache_is_built_again_only_for_large_work(world):
    world.known = world.truth = BOTH_WORK
    world.built = False
    chosen, _ = select()
    assert chosen.engine.name == "eager-fp32"
    assert chosen.prepare(WORTH_PROBING * 2).name == "native-amx-bf16"
    assert world.probed == 1


def test_fp32_is_never_replaced(world):
    world.known = world.truth = BOTH_WORK
    chosen, _ = select("fp32")
    assert chosen.prepare(1e30).name == "eager-fp32"


def test_bf16_that_cannot_be_had_is_an_error_with_the_findings(world):
    world.truth = NONE_WORK
    with pytest.raises(HardwareError, match="native_amx: crashed SIGILL"):
        select("bf16")


def test_who_insists_on_bf16_gets_it_also_where_it_is_slower(world):
    world.known = SLOWER
    chosen, said = select("bf16")
    assert chosen.engine.name == "native-avx512-bf16"
    assert said == ["using native-avx512-bf16: set by the user; no faster than fp32 here"]


def test_a_path_that_is_too_coarse_is_not_given_to_those_who_insist(world):
    world.truth = {name: finding(name, error=0.1) for name in SLOWER}
    with pytest.raises(HardwareError, match="no bf16 path"):
        select("bf16")


def test_work_is_counted_in_multiplications_and_additions():
    spec = random_model("bert").spec
    by_hand = 10 * 3 * (8 * 96**2 + 4 * 96 * 160 + 4 * 96 * 20)
    assert encode_flops(spec, 10, 20) == by_hand
