"""A command line, `arguments`, as several ranks: what each said and did to `folder`."""

from __future__ import annotations

import io
import sys
from typing import Any

from disk_points import Points
from whole_package import import_everything as prepare  # noqa: F401 - called by the server

from bertsmith.cli.app import _run
from bertsmith.errors import BertsmithError


def run(order: dict[str, Any], points: Points) -> dict[str, Any]:
    """The exit code, what was printed, and what was written, renamed or removed below `folder`."""
    changed: list[str] = []

    def audit(event: str, what: tuple[Any, ...]) -> None:
        if event in ("os.rename", "os.remove", "os.link", "shutil.rmtree"):
            changed.extend(str(path) for path in what if str(path).startswith(order["folder"]))

    sys.addaudithook(audit)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    try:
        code, error = _run(order["arguments"], debug=False), ""
    except BertsmithError as fault:
        code, error = fault.exit_code, f"{type(fault).__name__}: {fault}"
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))
    return {"code": code, "error": error, "out": out, "err": err, "changed": changed}
