"""The server: uvicorn under the limits of the service, with signals that drain it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import uvicorn

from bertsmith.errors import ConfigError
from bertsmith.serve.app import App
from bertsmith.serve.http.addresses import is_loopback
from bertsmith.serve.http.protocol import guarded_protocol
from bertsmith.serve.memory import give_back
from bertsmith.serve.service import Service

Notice = Callable[[str], None]
TICKS_TO_TRIM = 50  # of .1 s; then memory that requests have left is given back
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
    """A socket of that address, before any model is loaded; port 0 takes a free one."""
    bound: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise ConfigError(
            f"cannot listen on port {port} of {host} ({error.strerror}): choose another with "
            "--port or --host"
        ) from error
    return bound


class _Server(uvicorn.Server):
    """uvicorn, with a service that drains at a signal before connections are closed.

    uvicorn itself closes its sockets first, and raises the signal again at its end.
    """

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._ready = ready
        self._signalled = 0.0
        self._last_work = 0.0

    def handle_exit(self, sig: int, frame: object) -> None:
        """Drain at the first signal, end at the second."""
        if self._service.draining:
            self.should_exit = self.force_exit = True
        else:
            self._service.draining = True
            self._signalled = time.monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: by uvicorn's reasons, or because all that was accepted is answered."""
        if await super().on_tick(counter):
            return True
        if counter % TICKS_TO_TRIM == 0 and self._service.worked:
            self._service.worked = False
            give_back()
        if not self._service.draining:
            return False
        now = time.monotonic()
        if self._service.accepted:
            self._last_work = now
        idle = now - max(self._last_work, self._signalled)
        return idle > LINGER or now - self._signalled > self._service.limits.drain


def run(service: Service, *, host: str, port: int, notice: Notice) -> None:
    """Serve until a signal; every accepted request is answered first."""
    limits = service.limits
    bound = bound_socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        App(service),
        http=guarded_protocol(limits),
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
        backlog=min(limits.connections, 2_048),
    )
    server = _Server(
        config, service, lambda: notice(f"ready on http://{shown}:{bound.getsockname()[1]}")
    )

    async def main() -> None:
        await service.start()
        try:
            await server.serve(sockets=[bound])
        finally:
            await service.stop(0.0 if server.force_exit else limits.drain)

    with bound, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(main())
