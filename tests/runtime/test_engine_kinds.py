"""A third kind of engine is an entry of the table: probed in a child, selected, or refused."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from models_for_engines import random_model
from tiny_sentences import tiny_sentence_folder
from toy_engine import ToyEngine, toy_kind

import bertsmith
from bertsmith.errors import HardwareError
from bertsmith.hardware.report import examine
from bertsmith.runtime.engines.kinds import (
    ENGINE_KINDS,
    engine_paths,
    engine_probes,
    engine_refusals,
)
from bertsmith.runtime.selection import WORTH_PROBING, Selection

TEXTS = ["a red bird", "the old man", "one more"]


@pytest.fixture(autouse=True)
def own_findings(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSMITH_CACHE", str(tmp_path / "cache"))
    here, root = Path(__file__).parent, Path(bertsmith.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{here}")  # of the probe's process


def select(option, precision="fp32"):
    notes = []
    chosen = Selection(
        random_model("bert"),
        device=torch.device("cpu"),
        precision=precision,
        threads=2,
        notice=notes.append,
        kinds={"toy-fp32": toy_kind(option, "bf16" if precision == "bf16" else "fp32")},
    )
    return chosen, notes


def test_a_toy_engine_is_probed_in_a_child_and_selected_also_where_fp32_is_asked_for():
    chosen, notes = select("900")
    assert chosen.engine.name == "eager-fp32"
    engine = chosen.prepare(WORTH_PROBING)
    assert isinstance(engine, ToyEngine)
    assert engine.streams == 2
    assert notes[-1] == "using toy-fp32: measured at 9.0 x fp32, error 1.0e-07"
    later, _ = select("900")
    assert later.engine.name == "toy-fp32", "the finding is known from now on"


@pytest.mark.parametrize(("option", "status"), [("no such instruction", "absent"), ("90", "works")])
def test_a_toy_engine_whose_probe_fails_or_is_slow_is_not_taken(option, status):
    chosen, notes = select(option)
    assert chosen.prepare(WORTH_PROBING).name == "eager-fp32"
    assert len(notes) == 1
    (finding,) = examine(probes=engine_probes({"toy-fp32": toy_kind(option)})).findings
    assert finding.status == status
    assert finding.detail == ("" if status == "works" else option)


def test_who_insists_on_a_format_gets_the_reason_of_the_probe():
    chosen, _ = select("no such instruction", precision="bf16")
    with pytest.raises(HardwareError, match="toy_fp32: absent"):
        _ = chosen.engine


def test_doctor_and_a_loaded_model_know_the_kind_from_the_table(tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINE_KINDS, "toy-fp32", toy_kind("900"))
    assert engine_paths()["toy_fp32"] == "toy-fp32"
    from bertsmith.cli.commands.doctor import all_probes

    assert {"fp32_gemm", "native_amx_bf16", "toy_fp32", "word2vec_avx2"} <= set(all_probes())
    folder = tiny_sentence_folder(tmp_path / "model")
    plain = bertsmith.load(folder, precision="fp32").encode(TEXTS)
    examine(["toy_fp32"], probes=engine_probes())
    model = bertsmith.load(folder, precision="fp32")
    assert model.engine == "toy-fp32"
    assert np.allclose(model.encode(TEXTS), plain, atol=1e-6)


def test_the_table_says_which_models_each_kind_cannot_run(monkeypatch):
    monkeypatch.setitem(ENGINE_KINDS, "toy-fp32", toy_kind("900"))
    spec = random_model("bert").spec
    assert engine_refusals(spec) == dict.fromkeys(ENGINE_KINDS, "")
    assert engine_refusals(replace(spec, layers=13))["toy-fp32"] == "it is too deep"
    odd = engine_refusals(replace(spec, embedding_norm=False))
    assert odd["native-avx512-bf16"] == "it has no norm over its embeddings"
