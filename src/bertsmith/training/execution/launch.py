"""Starts a command as several processes of one machine, watches them, and leaves none behind."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from bertsmith.errors import ConfigError, LostRankError
from bertsmith.hardware import environment

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

log = logging.getLogger(__name__)

GRACE = 30  # seconds that ranks get to save after a signal, before they are killed
STOPPED = 75  # as in `loop.run`; not imported, since this process needs no torch yet
# How ranks end that missed another, or were stopped since another had failed.
_CONSEQUENCES = (LostRankError.exit_code, STOPPED, 128 + signal.SIGTERM, -signal.SIGTERM)
_LOCAL = "127.0.0.1"  # the store that ranks meet at has no password: nobody else may reach it


def relaunch(arguments: Sequence[str], *, devices: int, restarts: int = 1) -> NoReturn:
    """Become a launcher that runs `python ARGUMENTS` as `devices` ranks; does not return.

    A rank that is killed ends the group, which starts again up to `restarts` times.
    """
    if devices < 1:
        raise ConfigError(f"the number of devices must be at least 1, not {devices}")
    command = [sys.executable, "-m", __name__, f"--devices={devices}", f"--restarts={restarts}"]
    command += ["--", *arguments]
    variables = launch_variables(devices)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(sys.executable, command, variables)  # noqa: S606 - signals and code pass through
    sys.exit(subprocess.run(command, env=variables, check=False).returncode)


def launch_variables(devices: int) -> dict[str, str]:
    """The environment of a launcher: threads shared out, and a store of its own for each try."""
    threads = str(max(1, environment.thread_count() // devices))
    # A rank reports in one line which one was lost; torch's stack of C++ frames only hides it.
    quiet = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
    return (
        quiet
        | environment.inherited()
        | {
            # Without this a restarted group meets the leavings of the old one: pytorch 135712.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "BERTSMITH_THREADS": threads,
        }
    )


def leave(code: int) -> NoReturn:
    """End a rank, once all it wrote is closed, without the last part of the interpreter.

    A thread of gloo that is still there while the interpreter winds down aborts the process now
    and then ("terminate called without an active exception"): after a killed rank this made about
    one restart in eight fail. A process of its own has no such threads and ends as usual.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """The launcher itself; its exit code is that of the rank that failed first."""
    options = _options(arguments)
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    for tries in range(options.restarts + 1):
        code, again = _one_try(options, tries)
        if not again:
            break
    return code


def _one_try(options: argparse.Namespace, tries: int) -> tuple[int, bool]:
    """Run all ranks to their end; the exit code, and whether starting them again may help."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    settings = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=options.devices,
        run_id=secrets.token_hex(8),
        role="rank",
        rdzv_backend="c10d",
        rdzv_endpoint=f"{_LOCAL}:0",
        max_restarts=0,  # torch would also repeat what a rank refused with a reason
        local_addr=_LOCAL,
        shutdown_timeout=options.grace,
    )
    try:
        elastic_launch(settings, sys.executable)(*options.command)
    except SignalException as received:
        log.info("%s was passed on, and all ranks have ended", received.sigval.name)
        return STOPPED, False
    except ChildFailedError as fault:
        rank, failure = root_cause(fault.failures)
        killed = failure.exitcode < 0 or failure.exitcode in _CONSEQUENCES
        again = killed and tries < options.restarts
        log.error(
            "rank %d (process %d) ended first, with %s; all other ranks were stopped%s%s",
            *(rank, failure.pid),
            failure.signal_name() if failure.exitcode < 0 else f"code {failure.exitcode}",
            f" after {tries} restarts" if tries else "",
            "; starting all again from the last checkpoint" if again else "",
        )
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode, again
    return 0, False


def root_cause(failures: Mapping[int, ProcessFailure]) -> tuple[int, ProcessFailure]:
    """The rank that failed first, of those detected together one that did not just miss another.

    Failures stand in the order in which they were detected; those that the launcher brought about
    by stopping the rest come last, and if it had to kill them, seconds later.
    """
    first = min(failure.timestamp for failure in failures.values())
    own = {
        rank: failure
        for rank, failure in failures.items()
        if failure.timestamp <= first + 1 and failure.exitcode not in _CONSEQUENCES
    }
    return min((own or failures).items(), key=lambda item: item[1].timestamp)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bertsmith.training.execution.launch", description=__doc__
    )
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--grace", type=int, default=GRACE)
    parser.add_argument("command", nargs="+", help="what follows `python` in each rank")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
