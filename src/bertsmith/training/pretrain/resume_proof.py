"""Proof that a run resumes exactly: one copy is left alone, another is killed again and again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.config import to_toml
from bertsmith.errors import ResumeError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.digest import file_digest
from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.loop.progress import Progress
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe

STEPS = 12
SAVE_EVERY = 3
KILLS = (1, 5, 8, 11)  # before the first save, twice between two, and just before the end
TIME_LIMIT = 3_600  # seconds a child may take


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeProof:
    """Files of both runs that were compared, with the hash both have, and where one was killed."""

    steps: int
    kills: tuple[int, ...]
    files: dict[str, str]


def verify_resume(job: Job, *, say: Callable[[str], None] = lambda line: None) -> ResumeProof:
    """Run a short form of the job twice, once killed at several steps, and compare every byte."""
    # Next to the result: where there is room for it, there is room for this.
    parent = job.out.absolute().parent
    make_folder(parent)
    place = Path(tempfile.mkdtemp(prefix=f".{job.out.name}.verify-", dir=parent))
    try:
        recipe = place / "recipe.toml"
        recipe.write_text(to_toml(shortened(job.recipe)), encoding="utf-8")
        say(f"{STEPS} steps without interruption")
        _child(job, recipe, place / "whole", None)
        for kill in KILLS:
            say(f"killed by SIGKILL after step {kill}")
            _child(job, recipe, place / "killed", kill)
        say("resumed to the end")
        _child(job, recipe, place / "killed", None)
        return _compared(place / "whole", place / "killed")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def shortened(recipe: PretrainRecipe) -> PretrainRecipe:
    """The recipe in a few steps, with frequent saves, all stages and a mean of the last weights."""
    tree = recipe.model_dump(mode="json", exclude_none=True)
    tree["schedule"].pop("budget", None)
    tree["schedule"]["steps"] = STEPS
    tree["save"] |= {"every": SAVE_EVERY}
    tree["eval"] |= {"every": 5}
    tree["log"] |= {"every": 2, "tensorboard": False}
    tree["averaging"] |= {"every": 1}
    tree["run"] |= {"devices": 1}
    return PretrainRecipe.model_validate_json(json.dumps(tree))


def _child(job: Job, recipe: Path, out: Path, die_after: int | None) -> None:
    order: dict[str, Any] = {
        "recipe": str(recipe),
        "corpus": str(job.corpus.absolute()),
        "out": str(out),
        "init": job.init,
        "threads": torch.get_num_threads(),
        "die_after": die_after,
    }
    path = recipe.with_name("job.json")
    path.write_text(json.dumps(order), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(path)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    expected = 0 if die_after is None else -signal.SIGKILL
    if done.returncode != expected:
        raise ResumeError(
            f"a run that should have {'ended' if die_after is None else 'been killed'} left with "
            f"code {done.returncode}: {done.stderr.strip()[-2000:]}"
        )


def _compared(whole: Path, killed: Path) -> ResumeProof:
    names = [
        path.relative_to(whole)
        for path in sorted(whole.rglob("*"))
        if path.is_file() and path.suffix == ".safetensors"
    ]
    hashes = {}
    for name in names:
        one, other = file_digest(whole / name), file_digest(killed / name)
        if one != other:
            raise ResumeError(
                f"{name} differs between the uninterrupted run ({one[:12]}) and the resumed one "
                f"({other[:12]}); please report this with your recipe"
            )
        hashes[name.as_posix()] = one
    return ResumeProof(steps=STEPS, kills=KILLS, files=hashes)


def main(path: Path) -> int:
    """Run the job of a file, killed after its step `die_after`; the exit code of the outcome."""
    order = json.loads(path.read_text(encoding="utf-8"))
    torch.set_num_threads(order["threads"])
    job = Job(
        recipe=load_recipe(order["recipe"]),
        corpus=Path(order["corpus"]),
        out=Path(order["out"]),
        init=order["init"],
    )

    def watch(look: Progress) -> None:
        if look.step == order["die_after"]:
            os.kill(os.getpid(), signal.SIGKILL)

    execution = choose_execution(job.recipe.run, job.out)
    return pretrain(job, execution=execution, watch=watch).exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
