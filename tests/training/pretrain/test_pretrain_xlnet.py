"""The recipe xlnet: from text to a model by commands, exact after a kill, the same on two ranks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import environment, run
from safetensors.torch import load_file
from toy_corpus import documents, short_recipe, toy_corpus

from bertsmith.corpus.shards import open_corpus
from bertsmith.folders.read import load_model
from bertsmith.objectives.permuted_lm import PermutedBatch
from bertsmith.training.loop.progress import Progress
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.workload import PretrainWorkload

MEMORY = ("input.max_length=64", "program.memory=16", "program.block=32")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_corpus(tmp_path_factory.mktemp("corpus"), kind="xlnet", size=150)


def orders(work: PretrainWorkload, step: int) -> list[tuple[object, ...]]:
    """Ids, order and predicted places of every text of a step."""
    found: list[tuple[object, ...]] = []
    for batch in work.micro_batches(step, 0.0):
        assert isinstance(batch, PermutedBatch)
        layout = batch.inputs.layout
        chosen = torch.zeros(len(batch.inputs.ids), dtype=torch.bool)
        chosen[batch.targets.at] = True
        parts = zip(
            batch.inputs.ids.split(list(layout.lengths)),
            chosen.split(list(layout.lengths)),
            layout.sees.ranks,
            strict=True,
        )
        for ids, places, ranks in parts:
            own = ranks[: len(ids)].tolist()
            found.append((tuple(ids.tolist()), tuple(places.tolist()), tuple(own)))
    return sorted(found)


def test_a_vocabulary_by_the_command_makes_a_model_that_transformers_reads(
    tmp_path: Path,
) -> None:
    import transformers

    text = tmp_path / "text.txt"
    lines = "\n\n".join(documents()).replace("the man", "The man")
    text.write_text(lines + "\n", encoding="utf-8")
    words, shards, out = (tmp_path / name for name in ("words", "shards", "model"))
    assert (
        run("vocab", "learn", text, "--tokenizer", "xlnet", "--vocab-size", "120", "--out", words)
        == 0
    )
    assert run("corpus", "build", text, "--vocab", words, "--out", shards, "--quiet") == 0
    settings = ("--set", "batch.tokens=512", "--set", "batch.micro_tokens=512")
    command = ("pretrain", "xlnet", "--corpus", shards, "--size", "tiny", "--steps", "3")
    assert run(*command, *settings, "--out", out, "--threads", "1", "--quiet") == 0
    loaded = load_model(out)
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    assert type(theirs).__name__.startswith("XLNetTokenizer")
    names = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    assert theirs.convert_tokens_to_ids(names) == list(range(9))
    encoding = loaded.tokenizer.encode("The man went.", "a dog")
    assert theirs("The man went.", "a dog")["input_ids"] == encoding.ids.tolist()
    assert encoding.ids[-1] == 3
    assert loaded.tokenizer.decode(encoding.ids).startswith("The man"), "capitals are kept"
    reference = transformers.XLNetLMHeadModel.from_pretrained(out).eval()
    from bertsmith.nn import Inputs, Layout

    ids = torch.from_numpy(encoding.ids.astype(np.int64))
    segments = torch.from_numpy(encoding.segments.astype(np.int64))
    with torch.no_grad():
        wanted = reference(ids[None], token_type_ids=segments[None]).logits[0]
        inputs = Inputs(ids, Layout.of([len(ids)]), {"segments": segments})
        hidden = loaded.model.eval()(inputs).hidden
        found = loaded.model.logits("language_model", hidden)
    assert torch.allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize("more", [(), MEMORY], ids=["plain", "memory"])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(
    more: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    recipe = short_recipe("xlnet", "save.every=4", *more, steps=8)
    whole = Job(recipe=recipe, corpus=corpus, out=tmp_path / "whole")
    broken = Job(recipe=recipe, corpus=corpus, out=tmp_path / "broken")
    pretrain(whole)

    class Killed(Exception):
        pass

    def die(look: Progress) -> None:
        if look.step == 6:
            raise Killed

    with pytest.raises(Killed):
        pretrain(broken, watch=die)
    seen: list[int] = []
    pretrain(broken, watch=lambda look: seen.append(look.step))
    assert seen == [5, 6, 7, 8], "resumes from the checkpoint of step 4"
    name = "model.safetensors"
    assert (whole.out / name).read_bytes() == (broken.out / name).read_bytes()


@pytest.mark.parametrize("more", [(), MEMORY], ids=["plain", "memory"])
def test_two_ranks_read_the_texts_and_orders_of_one(more: tuple[str, ...], corpus: Path) -> None:
    recipe = short_recipe("xlnet", "batch.tokens=640", *more)
    opened = open_corpus(corpus)
    works = [
        PretrainWorkload(recipe, opened),
        *(PretrainWorkload(recipe, opened, rank=rank, world=2) for rank in range(2)),
    ]
    for step in (0, 5):
        one, *halves = (orders(work, step) for work in works)
        assert one == sorted(text for half in halves for text in half)
        assert all(halves)
    assert orders(works[0], 0) != orders(works[0], 1)
    again = PretrainWorkload(recipe, opened)
    assert orders(again, 5) == orders(works[0], 5), "the same seed gives the same orders"


def command(corpus: Path, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "bertsmith", "pretrain", "xlnet", "--corpus", str(corpus)),
        *("--size", "tiny", "--steps", "30", "--precision", "fp32", "--threads", "1", "--quiet"),
        *("--set", "batch.tokens=512", "--set", "batch.micro_tokens=256", "--set", "save.every=5"),
        *("--set", "log.tensorboard=false", "--out", str(out), *more),
    ]


@pytest.mark.slow
def test_a_killed_run_resumes_and_two_processes_give_the_weights_of_one(
    corpus: Path, tmp_path: Path
) -> None:
    for name, more in (("one", ()), ("two", ("--devices", "2"))):
        done = subprocess.run(
            command(corpus, tmp_path / name, *more),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    process = subprocess.Popen(command(corpus, tmp_path / "cut"), env=environment())
    until = time.monotonic() + 120
    while not (tmp_path / "cut/checkpoints/step-00000005").exists():
        assert process.poll() is None, "ended before it was to be killed"
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    subprocess.run(command(corpus, tmp_path / "cut"), env=environment(), check=True)
    files = [(tmp_path / name / "model.safetensors") for name in ("one", "cut", "two")]
    assert files[0].read_bytes() == files[1].read_bytes()
    one, two = load_file(files[0]), load_file(files[2])
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4)
    curves = [
        [
            row["losses"]["permuted"]
            for row in map(json.loads, path.read_text().splitlines())
            if row["kind"] == "train"
        ]
        for path in (tmp_path / name / "log.jsonl" for name in ("one", "two"))
    ]
    assert curves[0] == pytest.approx(curves[1], abs=1e-5)
