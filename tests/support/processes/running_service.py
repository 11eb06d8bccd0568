"""A service in a thread of the test process, its workers in processes of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from bertsmith.serve.access_log import AccessLog
from bertsmith.serve.accounting import refused_body
from bertsmith.serve.app import App
from bertsmith.serve.http.keys import Keys
from bertsmith.serve.http.protocol import guarded_protocol
from bertsmith.serve.limits import Limits
from bertsmith.serve.service import Service, ServiceSettings

KEY = "a-key-of-the-tests-0123456789"
LIMITS = Limits(head_seconds=1.0, body_seconds=1.0)


class Records(AccessLog):
    """The lines of the log, kept."""

    def __init__(self) -> None:
        super().__init__(None)
        self.kept: list[dict[str, Any]] = []

    def __call__(self, record: Mapping[str, Any]) -> None:
        self.kept.append(dict(record))


class RunningService:
    """Serves models on a free port of the loopback until it is closed."""

    def __init__(
        self,
        models: Mapping[str, Path],
        *,
        index: Path | None = None,
        limits: Limits = LIMITS,
        keys: tuple[str, ...] = (KEY,),
    ) -> None:
        log = Records()
        self.records = log.kept
        settings = ServiceSettings(
            models=models,
            index=index,
            precision="fp32",
            threads=1,
            limits=limits,
            keys=Keys(keys),
        )
        self.service = Service(settings, access_log=log)
        config = uvicorn.Config(
            App(self.service),
            port=0,
            http=guarded_protocol(limits, partial(refused_body, self.service)),
            lifespan="off",
            log_config=None,
            ws="none",
        )
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._ready = threading.Event()
        self._thread.start()
        assert self._ready.wait(120)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _main(self) -> None:
        await self.service.start()
        serving = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self._ready.set()
        await serving
        await self.service.stop(5.0)

    def close(self) -> None:
        self.server.should_exit = True
        self._thread.join(30)
