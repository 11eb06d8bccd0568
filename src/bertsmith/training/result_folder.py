"""A finished model beside the files of its run: all files whole, the config last."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.errors import WriteError
from bertsmith.staged import sync

STAGING = ".model"


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """A folder to write a model into; at the end its files move into `out`.

    The config moves last: a folder without one is not yet a model.
    """
    staging = out / STAGING
    shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed here
    yield staging
    try:
        for path in sorted(staging.iterdir(), key=lambda path: path.name == "config.json"):
            path.replace(out / path.name)
        staging.rmdir()
        sync(out)
    except OSError as fault:
        raise WriteError(f"cannot put the model into {out}: {fault.strerror or fault}") from fault
