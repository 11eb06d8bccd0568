"""A process that forks the build of a small index for each line it reads, as toy_server does.

A line is JSON: folder, kill_at (the number of the file-system step at which the child kills
itself). The answers are {"pid": ...} at once and {"code": ..., "points": ..., "error": ...}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "sentences" / "search"))

import torch
import usearch.index  # noqa: F401  imported once for all children
from toy_index import build, texts
from toy_server import Points

from bertsmith.sentences.search import index
from bertsmith.sentences.search.folder import candidates, recall, writer

ROWS = texts(1_500)


def main() -> None:
    torch.set_num_threads(1)
    writer.MOST_ROWS, index.BLOCK = 600, 256
    candidates.EXACT_BELOW = recall.EXACT_BELOW = 1_000
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
        known = json.loads(report) if report else {"points": None, "error": ""}
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        _say({"code": code, **known})


def _child(job: dict[str, Any], tell: int) -> None:
    code, error = 70, ""
    points = Points(job.get("kill_at", 0), 0, 0)
    say = os.write
    try:
        points.install()
        build(Path(job["folder"]), ROWS, "float16").close()
        code = 0
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
