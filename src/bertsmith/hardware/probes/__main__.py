"""The child's side: guards itself, runs one probe, and prints its measurement as JSON."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from dataclasses import asdict
from typing import Any

from bertsmith.errors import HardwareError
from bertsmith.hardware.probe_process import guard, take_stdout
from bertsmith.hardware.probes import Measurement, ProbeJob


def main(arguments: list[str]) -> int:
    """Runs `module option threads limit`; the answer goes to stdout, all else to stderr."""
    module, option, threads, limit = arguments
    answer_to = take_stdout()
    guard(float(limit))
    try:
        answer = _measure(module, option, int(threads))
    except HardwareError as why:
        answer = {"absent": str(why)}
    with os.fdopen(answer_to, "w", encoding="utf-8") as out:
        json.dump(answer, out, allow_nan=False)
    # Libraries' threads and exit hooks could still crash a finished measurement.
    sys.stderr.flush()
    os._exit(0)


def _measure(module: str, option: str, threads: int) -> dict[str, Any]:
    try:
        probe = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the probe is there, and something it needs is not
        raise HardwareError(f"this installation has no {module}") from error
    measurement: Measurement = probe.measure(ProbeJob(threads=threads, option=option))
    answer = asdict(measurement)
    if not math.isfinite(measurement.error):
        answer["error"] = None  # JSON has no NaN; the parent reads None as wrong
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
