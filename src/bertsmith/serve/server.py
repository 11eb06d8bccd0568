"""The server: uvicorn under the limits of the service, with signals that drain it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from functools import partial

import uvicorn

from bertsmith.errors import ConfigError
from bertsmith.serve.accounting import refused_body
from bertsmith.serve.app import App
from bertsmith.serve.http.addresses import is_loopback
from bertsmith.serve.http.protocol import guarded_protocol
from bertsmith.serve.memory import give_back
from bertsmith.serve.service import Service

Notice = Callable[[str], None]
TICKS_TO_TRIM = 50  # of .1 s; then memory that requests have left is given back
BACKLOG = 1_024  # connections that the system holds until they are taken
CUT_SECONDS = 1.0  # after a second signal, to answer 503 to what is not answered yet
LINGER = 0.3  # seconds of 503 after the last answer, for who has not heard that the service ends


def check_address(host: str, *, has_keys: bool, insecure: bool) -> None:
    """Refuse an address that others can reach where nobody needs a key."""
    if has_keys or insecure or is_loopback(host):
        return
    raise ConfigError(
        f"{host} can be reached by others and no key is set: give --keys FILE, or --insecure if "
        "everybody may call"
    )


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at that address, before any model is loaded; port 0 takes a free one.

    Two services could bind the same port, but only one can listen there.
    """
    bound: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise ConfigError(
            f"cannot listen on port {port} of {host} ({error.strerror}): choose another with "
            "--port or --host"
        ) from error
    return bound


class _Server(uvicorn.Server):
    """uvicorn, with models that are loaded while it listens, and that drain before it ends.

    uvicorn itself closes its sockets at a signal, and raises the signal again at its end.
    """

    def __init__(self, config: uvicorn.Config, app: App, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._service = app.service
        self._ready = ready
        self._loading: asyncio.Task[None] | None = None
        self._signalled = self._cut = self._last_work = 0.0

    @property
    def was_cut(self) -> bool:
        """Whether a second signal came."""
        return self._cut > 0

    def handle_exit(self, sig: int, frame: object) -> None:
        """Drain at the first signal, end at the second."""
        if not self._service.draining:
            self._service.draining = True
            self._signalled = time.monotonic()
        elif not self._cut:
            self._cut = time.monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, load the models, then say so."""
        await super().startup(sockets)
        self._loading = asyncio.create_task(self._load())

    async def loaded(self) -> None:
        """Raises why the models could not be loaded; a signal is no fault."""
        if self._loading is not None:
            if self._service.draining:
                self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading

    async def _load(self) -> None:
        try:
            await self._service.start()
        except BaseException:
            self.should_exit = True
            raise
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: by uvicorn's reasons, or because all that was accepted is answered."""
        if await super().on_tick(counter):
            return True
        self._service.access_log.flush()
        if counter % TICKS_TO_TRIM == 0 and self._service.worked:
            self._service.worked = False
            give_back()
        if not self._service.draining:
            return False
        now = time.monotonic()
        if self._cut:
            self._app.cut_off()
            self.force_exit = not self._service.accepted or now - self._cut > CUT_SECONDS
            return self.force_exit
        if self._service.accepted:
            self._last_work = now
        idle = now - max(self._last_work, self._signalled)
        return idle > LINGER or now - self._signalled > self._service.limits.drain


def run(service: Service, bound: socket.socket, *, notice: Notice) -> None:
    """Serve at a socket until a signal; every accepted request is answered first."""
    limits = service.limits
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    app = App(service)
    config = uvicorn.Config(
        app,
        http=guarded_protocol(limits, partial(refused_body, service)),
        loop="uvloop",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        date_header=True,
        timeout_keep_alive=int(limits.keep_alive),
        timeout_graceful_shutdown=int(limits.drain),
        backlog=min(limits.connections, BACKLOG),
    )
    server = _Server(config, app, lambda: notice(f"ready on http://{shown}:{port}"))

    async def main() -> None:
        try:
            await server.serve(sockets=[bound])
            await server.loaded()
        finally:
            await service.stop(0.0 if server.was_cut else limits.drain)
            service.access_log.close()

    with bound, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(main())
