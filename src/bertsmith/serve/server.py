"""The server: uvicorn under the limits of the service, with signals that drain it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable

import uvicorn

from bertsmith.errors import ConfigError
from bertsmith.serve.app import App
from bertsmith.serve.http.protocol import guarded_protocol
from bertsmith.serve.service import Service

Notice = Callable[[str], None]


def check_address(host: str, *, has_keys: bool, insecure: bool) -> None:
    """Refuse an address that others can reach where nobody needs a key."""
    if has_keys or insecure or is_loopback(host):
        return
    raise ConfigError(
        f"{host} can be reached by others and no key is set: give --keys FILE, or --insecure if "
        "everybody may call"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    """uvicorn, with a service that is told to drain as soon as a signal arrives."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: object) -> None:
        """Drain at the first signal, end at the second."""
        self._service.draining = True
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def run(service: Service, *, host: str, port: int, notice: Notice) -> None:
    """Serve until a signal; every accepted request is answered first."""
    limits = service.limits
    config = uvicorn.Config(
        App(service),
        host=host,
        port=port,
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
    server = _Server(config, service)

    async def main() -> None:
        await service.start()
        notice(f"ready on http://{host}:{port}")
        try:
            await server.serve()
        finally:
            await service.stop(limits.drain)

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(main())
