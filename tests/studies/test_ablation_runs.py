"""Ablations end to end on a toy corpus: shorthands, refusals, kills, one table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import environment, run

from bertsmith.api.observer import executing
from bertsmith.api.studies import ablate
from bertsmith.config import to_toml
from bertsmith.corpus.shards import open_corpus
from bertsmith.errors import BertsmithError, ConfigError
from bertsmith.objectives.causal import CausalSettings
from bertsmith.studies.ablation.masked_loss import MASKED_LOSS, masked_loss
from bertsmith.studies.ablation.study import AblationRequest, read_ablation
from bertsmith.studies.ablation.table import RowFigures, make_table
from bertsmith.studies.ablation.variations import (
    GridRow,
    Variation,
    find_grid,
    full_settings,
    variations,
)
from bertsmith.training.execution.execution import Execution
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import load_recipe
from bertsmith.training.pretrain.workload import PretrainWorkload

LONG = os.environ.get("BERTSMITH_LONG") == "1"
SMALL = {
    "model.size": "tiny",
    "schedule.steps": 3,
    "batch.tokens": 512,
    "batch.micro_tokens": 512,
    "eval.held_out": 0.1,
    "log.tensorboard": False,
}
SETTINGS = [
    *(f"{name}={str(value).lower()}" for name, value in SMALL.items()),
    "stages=[]",
]


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    lines = ["text\tlabel"]
    for number in range(60):
        lines.append(f"the man painted the store {number}\tart")
        lines.append(f"a dog ran past a river {number}\trun")
    path = tmp_path / "verbs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _request(toy_shards: Path, out: Path, *vary: str, **more: object) -> AblationRequest:
    given = {"recipe": "bert", "settings": SETTINGS, "seeds": 1, **more}
    return AblationRequest(corpus=toy_shards, out=out, vary=vary, **given)


def test_the_short_forms_of_the_documentation_mean_settings_of_recipes() -> None:
    assert full_settings("objectives.nsp=0") == ("program.objectives.nsp=0",)
    assert full_settings("mask.copies = 10") == ("program.mask.copies=10",)
    assert full_settings("model.size=mini") == full_settings("size=mini") == ("model.size=mini",)
    assert full_settings("bilstm=64") == ("probe.head.lstm=64",)
    rows = [GridRow(name=one, settings=(one,)) for one in ("objectives.nsp=0", "size=mini")]
    rows.append(GridRow(name="ltr", settings=("reading=left_to_right", "bilstm=64")))
    base, no_nsp, mini, left = variations("bert", SETTINGS, rows)
    assert base.recipe.program.pair == "next_sentence"
    assert no_nsp.recipe.program.pair is None
    assert mini.recipe.model.size == "mini"
    assert left.recipe.model.sees == "before"
    assert isinstance(left.recipe.program, CausalSettings)
    assert left.probe == ("head.lstm=64",)


def test_the_shipped_grid_has_the_rows_of_the_paper() -> None:
    grid = find_grid("bert-paper")
    assert grid is not None
    rows = variations(grid.recipe, [*grid.settings, "model.size=tiny"], grid.vary)
    assert len(rows) == 13
    assert len({row.slug for row in rows}) == 13
    names = " ".join(row.name for row in rows)
    for word in ("NSP", "left-to-right", "BiLSTM", "layer", "mask", "static"):
        assert word in names
    assert len({to_toml(row.recipe) for row in rows}) == 12  # + BiLSTM shares its pre-training


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (["mask.rat=0.3"], "did you mean 'program.mask.rate'"),
        (["modle.size=mini"], "modle"),
        (["probe.head.lstn=8"], "did you mean 'head.lstm'"),
        (["mask.rate=0.3", "program.mask.rate=0.3"], "repeats 'mask.rate=0.3'"),
        (["mask.rate=0.3", "mask.rate=0.3"], "two rows are called"),
        (["mask.rate=0.15"], "changes nothing of base"),
        (["reading=backwards"], "left_to_right"),
        (["schedule.steps=9"], "equally many tokens"),
        (["run.seed=9"], "same seeds"),
        (["eval={held_out=0.5}"], "same held-out text"),
        (["schedule={steps=9}"], "equally many tokens"),
        (['schedule={budget="1m"}'], "either steps or budget"),
        (["mask.rate"], "is no setting"),
        ([";"], "is no setting"),
        ([], "nothing to vary"),
    ],
)
def test_rows_that_cannot_be_are_refused(
    vary: list[str], message: str, toy_shards: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        read_ablation(_request(toy_shards, tmp_path / "out", *vary))
    assert not (tmp_path / "out" / "models").exists()


def test_every_row_reads_as_many_tokens_as_the_base(toy_shards: Path, tmp_path: Path) -> None:
    settings = [*SETTINGS, "schedule.steps=40"]
    vary = ["objectives.nsp=0", "batch.tokens=1024", "mask.rate=0.3"]
    study = read_ablation(_request(toy_shards, tmp_path / "o", *vary, settings=settings)).ablation
    corpus = open_corpus(toy_shards)
    steps = [row.recipe.schedule.steps for row in study.rows]
    works = [PretrainWorkload(row.recipe, corpus) for row in study.rows]
    read = [
        sum(w.tokens(b) for step in range(n) for b in w.micro_batches(step, step / n))
        for w, n in zip(works, steps, strict=True)
    ]
    assert steps[1] < 40  # texts without next sentence prediction are longer
    assert steps[2] == 20
    assert steps[3] == 40
    assert read == pytest.approx([read[0]] * 4, rel=0.03)


def test_static_masks_that_are_never_repeated_share_the_run_of_the_base(
    toy_shards: Path, tmp_path: Path
) -> None:
    vary = ["mask.copies=10", "mask.rate=0.3"]
    study = read_ablation(_request(toy_shards, tmp_path / "o", *vary)).ablation
    assert "no difference is possible" in study.rows[1].note
    assert study.owners()["mask.copies=10"] is study.rows[0]
    assert study.probed(study.rows[1]) is study.rows[0]
    longer = [*SETTINGS, "schedule.steps=2000"]
    once = _request(toy_shards, tmp_path / "o", "mask.copies=1", settings=longer)
    static = read_ablation(once).ablation
    assert not static.rows[1].note
    assert static.rows[1].recipe.program.draw_of(5) == 0


def test_names_of_rows_make_names_of_files_however_long() -> None:
    long = "optimizer={" + ", ".join(f"beta{n}=0.9" for n in range(60)) + "}"
    slugs = {
        Variation(name=name, given=(), recipe=load_recipe("bert")).slug
        for name in (long, long + "x", "面" * 100, "../..")
    }
    assert len(slugs) == 4
    assert all(len(slug.encode()) <= 80 and "/" not in slug for slug in slugs)


def test_a_row_that_diverges_is_a_finding_and_not_the_end(
    toy_shards: Path, probe: Path, tmp_path: Path
) -> None:
    how = {"settings": {**SMALL, "stages": []}, "seeds": 1, "probes": [probe], "probing": "frozen"}
    vary = ["optimizer.lr=1e38", "mask.rate=0.3"]
    for _ in range(2):  # the second call finds all runs finished
        table = ablate("bert", toy_shards, tmp_path / "out", vary=vary, **how)
        cells = table.rows[1].cells
        assert {cell.dash for cell in cells.values()} == {"training diverged"}
        assert "training diverged with seed 0" in " ".join(table.rows[1].notes)
        assert all(cell.value is not None for cell in table.rows[2].cells.values())


def test_an_estimate_lists_rows_and_steps_and_trains_nothing(
    toy_shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [part for one in SETTINGS for part in ("--set", one)]
    start = ["ablate", "bert", "--corpus", toy_shards, "--out", tmp_path / "o", *settings]
    vary = ["--vary", "objectives.nsp=0", "--vary", "mask.copies=4", "--steps", "40"]
    assert run(*start, *vary, "--estimate", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in record["rows"]] == ["base", "objectives.nsp=0", "mask.copies=4"]
    assert record["rows"][0]["steps"] == 40 > record["rows"][1]["steps"]
    assert (record["models"], record["probes"], record["left"]) == (6, 0, 6)
    assert record["seconds"] > 0
    assert run(*start, *vary, "--estimate") == 0
    printed = capsys.readouterr().out
    assert "6 models and 0 probes, about" in printed
    assert "mask.copies=4: the run begins" in printed
    assert not (tmp_path / "o" / "models").exists()


def test_mistakes_in_names_are_answered_with_the_nearest_one(
    toy_shards: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="did you mean 'bert-paper'"):
        read_ablation(_request(toy_shards, tmp_path / "o", recipe="bert-papr"))
    with pytest.raises(ConfigError, match="did you mean 'no NSP'"):
        read_ablation(_request(toy_shards, tmp_path / "o", recipe="bert-paper", only=["NSP"]))
    with pytest.raises(ConfigError, match=r"^model\.heads=3: .* 128 is not a multiple of 3"):
        read_ablation(_request(toy_shards, tmp_path / "o", "model.heads=3"))


def test_probes_without_labels_and_corpora_that_do_not_fit_are_refused(
    toy_shards: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("one line\nanother line\n" * 20, encoding="utf-8")
    with pytest.raises(BertsmithError, match="plain"):
        read_ablation(_request(toy_shards, tmp_path / "o", "mask.rate=0.3", probes=[plain]))
    with pytest.raises(BertsmithError, match="nowhere"):
        read_ablation(_request(tmp_path / "nowhere", tmp_path / "o", "mask.rate=0.3"))
    budget = [*SETTINGS, 'schedule.budget="1m"']
    with pytest.raises(ConfigError, match=r"set schedule\.steps"):
        read_ablation(_request(toy_shards, tmp_path / "o", "mask.rate=0.3", settings=budget))


def test_the_masked_loss_of_the_base_is_the_one_that_pretraining_reports(
    toy_shards: Path, tmp_path: Path
) -> None:
    recipe = load_recipe("bert", SETTINGS)
    done = pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "m"))
    assert done.evaluation is not None
    loss = masked_loss(tmp_path / "m", recipe, open_corpus(toy_shards), Execution())
    assert loss == pytest.approx(done.evaluation.losses["mlm"], abs=1e-5)


def test_a_whole_ablation_shares_models_and_writes_its_files(
    toy_shards: Path, probe: Path, tmp_path: Path
) -> None:
    vary = ["reading=left_to_right", "reading=left_to_right; bilstm=8", "mask.rate=0.3"]
    out = tmp_path / "out"
    how = {"settings": {**SMALL, "stages": []}, "seeds": 1, "probes": [probe], "probing": "frozen"}
    table = ablate("bert", toy_shards, out, vary=vary, **how)
    assert [row.name for row in table.rows] == ["base", *vary]
    assert len(list((out / "models").iterdir())) == 3  # the two left-to-right rows share one
    assert table.rows[1].cells[MASKED_LOSS].dash.startswith("a left-to-right model")
    assert table.rows[3].cells[MASKED_LOSS].value is not None
    assert {f.name for f in out.iterdir()} >= {"ablation.html", "ablation.md", "ablation.json"}
    record = json.loads((out / "ablation.json").read_text())
    assert record["rows"][0]["parameters"] > 100_000
    first = (out / "ablation.json").read_bytes()
    times = {f: f.stat().st_mtime_ns for f in (out / "finished").iterdir()}
    study = read_ablation(
        _request(toy_shards, out, *vary, probes=[probe], probing="frozen", settings=SETTINGS)
    )
    with executing(study.ablation.base.run, out, None) as (execution, _):
        plan = study.plan(execution)
    cost = [plan.record[name] for name in ("models", "probes", "left", "seconds")]
    assert cost == [3, 4, 0, 0.0]
    assert "all finished" in plan.price[0]
    ablate("bert", toy_shards, out, vary=vary, **how)
    assert (out / "ablation.json").read_bytes() == first
    assert {f: f.stat().st_mtime_ns for f in (out / "finished").iterdir()} == times


def _figures(out: Path) -> list[dict[str, object]]:
    rows = json.loads((out / "ablation.json").read_text())["rows"]
    return [{key: row[key] for key in ("name", "metrics", "tokens", "parameters")} for row in rows]


def test_a_killed_ablation_continues_to_the_same_table(
    toy_shards: Path, probe: Path, tmp_path: Path
) -> None:
    def command(out: Path) -> list[str]:
        given = ["--vary", "mask.rate=0.3", "--seeds", "2", "--probe", str(probe), "--quiet"]
        settings = [part for one in SETTINGS for part in ("--set", one)]
        start = [sys.executable, "-m", "bertsmith", "ablate", "bert", "--corpus", str(toy_shards)]
        return [*start, *given, *settings, "--probing", "frozen", "--out", str(out)]

    quiet = {"env": environment(OMP_NUM_THREADS="1"), "stdout": subprocess.DEVNULL}
    killed = tmp_path / "killed"
    child = subprocess.Popen(command(killed), **quiet)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and child.poll() is None:
        if len(list(killed.glob("finished/*.json"))) >= 2:
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (killed / "ablation.json").exists()
    before = {f: f.read_bytes() for f in killed.glob("finished/*.json")}
    assert 2 <= len(before) < 8
    subprocess.run(command(killed), check=True, **quiet)
    subprocess.run(command(tmp_path / "whole"), check=True, **quiet)
    assert {f: f.read_bytes() for f in before} == before  # finished runs are not repeated
    assert _figures(killed) == _figures(tmp_path / "whole")


@pytest.mark.skipif(not LONG, reason="a dozen trainings: BERTSMITH_LONG=1 runs it")
def test_real_runs_of_one_recipe_under_other_seeds_get_at_most_two_stars(
    toy_shards: Path, tmp_path: Path
) -> None:
    losses = []
    for seed in range(12):
        recipe = load_recipe("bert", [*SETTINGS, "schedule.steps=40", f"run.seed={seed}"])
        done = pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / str(seed)))
        assert done.evaluation is not None
        losses.append(done.evaluation.losses["mlm"])
    random, stars = np.random.default_rng(0), 0
    for _ in range(20):
        drawn = random.permutation(losses)[:6]
        rows = [
            RowFigures(name=n, values={MASKED_LOSS: dict(enumerate(some.tolist()))}, dashes={})
            for n, some in (("base", drawn[:3]), ("again", drawn[3:]))
        ]
        stars += make_table(rows, range(3)).stars
    assert stars <= 2
