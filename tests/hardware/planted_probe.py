"""A probe for tests that behaves, or misbehaves, as its option says; free of torch."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes import Measurement, ProbeJob

SHAPE = "2048x384x1536"


def answer(rate: float = 300.0, error: float = 1e-3, **facts: object) -> Measurement:
    return Measurement(
        gflops={SHAPE: rate}, fp32_gflops={SHAPE: 100.0}, error=error, facts=dict(facts)
    )


def measure(job: ProbeJob) -> Measurement:
    behavior, _, argument = job.option.partition("=")
    if behavior == "works":
        return answer(rate=float(argument or 300))
    if behavior == "count":  # leaves a mark for every time it really runs
        with Path(argument).open("a") as file:
            file.write("x")
        return answer()
    if behavior == "signal":
        os.kill(os.getpid(), int(argument))
    if behavior == "hang":
        started = subprocess.Popen(["sleep", "120"])
        Path(argument).write_text(f"{os.getpid()} {started.pid}")
        signal.pause()
    if behavior == "off":
        return answer(error=float(argument))
    if behavior == "noise":
        print("a library talks on stdout", flush=True)
        os.write(1, b"so does C\n")
        return answer()
    if behavior == "flood":
        for _ in range(400):
            sys.stderr.write("x" * 100_000 + "\n")
        return answer()
    if behavior == "absent":
        raise HardwareError("not on this machine")
    if behavior == "raise":
        raise RuntimeError("the planted reason")
    if behavior == "sleep":
        time.sleep(float(argument))
    if behavior == "limits":
        import resource

        return answer(
            core=resource.getrlimit(resource.RLIMIT_CORE),
            variables={name: os.environ.get(name) for name in json.loads(argument)},
            path=sys.path,
        )
    return answer()
