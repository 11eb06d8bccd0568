"""A process that has imported torch once and forks trainings to write for each line it reads.

A line is JSON: model, jobs ([folder, task, sections] each), world, sharding, and `kill`,
seconds after which the children are killed. The answer is {"codes": [...], "errors": [...]}.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import torch
from tiny_writing import writing_job

import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all
from bertsmith.errors import BertsmithError
from bertsmith.nn.block import Block
from bertsmith.seq2seq.train import train_to_write
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import RankSettings, join


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        order = json.loads(line)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        children = [_forked(order, rank, port) for rank in range(order.get("world", 1))]
        if order.get("kill") is not None:
            time.sleep(order["kill"])
            for pid, _ in children:
                os.kill(pid, signal.SIGKILL)
        ended = [_ended(pid, told) for pid, told in children]
        codes, errors = [code for code, _ in ended], [error for _, error in ended]
        sys.stdout.write(json.dumps({"codes": codes, "errors": errors}) + "\n")
        sys.stdout.flush()


def _ended(pid: int, told: int) -> tuple[int, str]:
    with os.fdopen(told, "rb") as stream:
        error = stream.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), error


def _forked(order: dict[str, Any], rank: int, port: int) -> tuple[int, int]:
    told, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tell)
        return pid, told
    code = 0
    if order.get("world", 1) > 1:
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "toy",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(order["world"]),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
        }
    try:
        _train(order)
    except BertsmithError as fault:
        code = fault.exit_code
        os.write(tell, str(fault).encode())
    except BaseException as fault:
        code = 70
        os.write(tell, repr(fault).encode())
    os._exit(code)


def _train(order: dict[str, Any]) -> None:
    settings = RankSettings(sharding=order.get("sharding", "ddp"))
    ranks = join(settings, device=torch.device("cpu"), sharded=(Block,))
    execution = Execution(ranks=ranks)
    for folder, task, sections in order["jobs"]:
        job = writing_job(order["model"], task, sections=sections, out=Path(folder))
        train_to_write(job, execution=execution)
    execution.close()


if __name__ == "__main__":
    main()
