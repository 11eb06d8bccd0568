"""The real command `bertsmith serve` in a child process, as users start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

READY = re.compile(r"ready on (http://\S+)")


class ServiceProcess:
    """A service on a free port; `stdout` is its access log, `stderr` what it says to people."""

    def __init__(self, *arguments: str, key: str | None = None) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if key is not None:
            environment["BERTSMITH_SERVE_KEY"] = key
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bertsmith", "serve", *arguments, "--port", "0"),
                *("--threads", "1", "--precision", "fp32"),
            ],
            stdout=self._log,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.stderr = ""
        self.url = ""
        self._ready = threading.Event()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        assert self._ready.wait(120), "the service did not start"
        assert self.url, self.stderr

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line
            if found := READY.search(line):
                self.url = found[1]
                self._ready.set()
        self._ready.set()  # it ended

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def stdout(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def resident(self) -> int:
        """Bytes in memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self, number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        """The exit code after a signal."""
        self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        finally:
            self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reading.join(10)
        self._log.close()
