"""A process that has imported torch once and forks a toy run for each line it reads.

A line is JSON: folder, pause, umask, file_limit, kill_at (the number of the file-system step at
which the child kills itself), fail_at (the number at which that step fails with `fail_with`).
The answers are {"pid": ...} at once and {"code": ..., "points": ..., "error": ...} at the end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import torch
from disk_points import Points
from toy_training import ToyModel, toy_run, train_heeding_signals

from bertsmith.errors import BertsmithError
from bertsmith.training.loop.loop import train


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        train(toy_run(Path(folder), steps=4))  # loads what torch loads late, once for all children
    child = 0
    for line in sys.stdin:
        if child:
            os.waitpid(child, 0)  # only now: until here a late signal cannot hit a stranger
        job = json.loads(line)
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(told)
            _child(job, tell)
        os.close(tell)
        _say({"pid": child})
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with os.fdopen(told, "rb") as stream:
            report = stream.read()
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        _say({"code": code, **(json.loads(report) if report else {"points": None, "error": ""})})


def _child(job: dict[str, Any], tell: int) -> None:
    code, error = 70, ""
    points = Points(job.get("kill_at", 0), job.get("fail_at", 0), job.get("fail_with", 0))
    say = os.write
    try:
        os.umask(job.get("umask", 0o022))
        run = toy_run(Path(job["folder"]), pause=job.get("pause", 0.0))
        if job.get("file_limit"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_limit"], job["file_limit"]))
        if job.get("heavy"):
            run.model.extra = torch.nn.Parameter(torch.ones(job["heavy"]))
        assert isinstance(run.model, ToyModel)
        points.install()
        code = train_heeding_signals(run).exit_code
    except BertsmithError as fault:
        code, error = fault.exit_code, f"{type(fault).__name__}: {fault}"
    except BaseException as fault:
        error = f"{type(fault).__name__}: {fault!r}"
    finally:
        say(tell, json.dumps({"points": points.count, "error": error}).encode())
        os._exit(code)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
