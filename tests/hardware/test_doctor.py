"""`bertsmith doctor` from outside: a table for people, JSON for programs, never a crash."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_sentences import tiny_sentence_folder

import bertsmith
from bertsmith.models.sentence_spec import DenseLayer

ROOT = Path(bertsmith.__file__).parents[1]
PROGRAM = """
import sys
from bertsmith.hardware import probes

def plant(option, **more):
    return probes.Probe(
        module="planted_probe", about="planted", tolerance=1e-2, option=option, **more
    )

from dataclasses import replace
from bertsmith.classic.word2vec import engines as words
from bertsmith.runtime.engines import kinds

probes.PROBES.clear()
probes.PROBES.update(
    fp32_gemm=plant("works=100"),
    bf16_onednn=plant("signal=4"),
    mkl_bf16=plant("off=0.4"),
    accelerators=plant("absent"),
)
for name, probe in {
    "native-avx512-bf16": plant("works=500"),
    "native-amx-bf16": plant("works", compiles=True, limit=180.0),
}.items():
    kinds.ENGINE_KINDS[name] = replace(kinds.ENGINE_KINDS[name], probe=probe)
words.WORD_PROBES.clear()
words.WORD_PROBES["word2vec_avx2"] = plant("works=900")
from bertsmith.cli.commands.doctor import doctor
folders = [word for word in sys.argv[1:] if word.startswith("/")]
doctor(
    model=folders[0] if folders else None,
    as_json="--json" in sys.argv,
    fresh="--fresh" in sys.argv,
    quick="--quick" in sys.argv,
    limit=float(sys.argv[-1]) if "--limit" in sys.argv else 60.0,
)
if "torch" in sys.modules:
    sys.exit("the parent imported torch")
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="planted signals")


def doctor(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_json_is_the_whole_output_and_a_crash_is_a_row() -> None:
    done = doctor("--json", "--quick")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    statuses = {finding["name"]: finding["status"] for finding in report["findings"]}
    assert statuses == {
        "fp32_gemm": "works",
        "native_avx512_bf16": "works",
        "bf16_onednn": "crashed SIGILL",
        "mkl_bf16": "wrong numbers",
        "native_amx_bf16": "skipped",
        "accelerators": "absent",
        "word2vec_avx2": "works",
    }
    assert report["choices"]["inference"]["path"] == "native-avx512-bf16"
    assert report["choices"]["inference"]["speedup"] == pytest.approx(5.0)
    assert report["choices"]["training"]["path"] == "fp32"
    assert "crashed SIGILL" in report["choices"]["training"]["refused"]["bf16_onednn"]
    assert report["machine"]["torch"]
    for name in statuses:
        assert f"{name}: {statuses[name]}" in done.stderr  # one line of progress each


def test_the_table_says_what_works_and_ends_with_one_plain_sentence() -> None:
    done = doctor()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert "crashed SIGILL" in rows["bf16_onednn"]
    assert "wrong numbers" in rows["mkl_bf16"]
    assert "encoding" in rows["native_avx512_bf16"]
    assert "5.00" in rows["native_avx512_bf16"]
    assert lines[-1].startswith(
        "Encoding will use native-avx512-bf16 (planted), about 5.0 x plain fp32"
    )
    again = doctor()
    assert again.stderr == ""  # everything was kept: nothing runs, nothing to wait for
    assert again.stdout.splitlines()[-1] == lines[-1]


def test_a_plain_locale_gets_plain_characters() -> None:
    done = doctor("--quick", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_time_that_is_used_up_is_reported_and_the_next_call_does_the_rest() -> None:
    done = doctor("--json", "--limit", "0.5")
    assert done.returncode == 0, done.stderr
    statuses = {finding["status"] for finding in json.loads(done.stdout)["findings"]}
    assert statuses == {"not finished in time"}
    assert "did not finish in time" in doctor("--limit", "0.5").stdout
    assert "did not finish in time" not in doctor().stdout


def test_a_model_that_other_programs_read_differently_is_reported(tmp_path: Path) -> None:
    layer = DenseLayer(
        inputs=32,
        outputs=32,
        activation="tanh",
        residual=True,
        weight=torch.eye(32),
        bias=torch.zeros(32),
    )
    flowed = tiny_sentence_folder(tmp_path / "flowed", dense=(layer,))
    done = doctor(flowed, "--quick")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith(f"{flowed}: dense layers with use_residual")
    assert "text-embeddings-inference ignores the key" in last
    report = json.loads(doctor(flowed, "--json", "--quick").stdout)
    assert "use_residual" in report["model"]["problems"][0]
    plain = tiny_sentence_folder(tmp_path / "plain")
    assert doctor(plain, "--quick").stdout.splitlines()[-1] == f"{plain}: no problems"
