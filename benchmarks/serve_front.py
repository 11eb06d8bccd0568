"""Our service with the model replaced by constants: what HTTP, JSON, tokens and queue cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.serve.queue import WaitingText
from bertsmith.serve.served_model import ServedModel
from bertsmith.serve.server import bound_socket, run
from bertsmith.serve.service import Service, ServiceSettings


async def constants(self: ServedModel, batch: list[WaitingText]) -> Sequence[Any]:
    return np.full((len(batch), self.description["dimension"]), 0.05, np.float32)


if __name__ == "__main__":
    ServedModel._results = constants  # type: ignore[method-assign]
    settings = ServiceSettings(models={"model": Path(sys.argv[1])}, precision="fp32", threads=1)
    run(
        Service(settings),
        bound_socket("127.0.0.1", int(sys.argv[2])),
        notice=lambda message: print(message, file=sys.stderr),
    )
