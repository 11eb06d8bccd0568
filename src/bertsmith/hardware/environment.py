"""The only reader of environment variables outside the command line: folders, offline, threads."""

from __future__ import annotations

import logging
import math
import os
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

from bertsmith.errors import ConfigError

log = logging.getLogger(__name__)

MOST_THREADS = 1024  # or processes; starting more of them fails, or takes the machine down

# Variables that change which machine code torch runs, hence the findings of probes.
CODE_PATH_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
)
_TRUE = frozenset({"1", "on", "true", "yes"})
_FALSE = frozenset({"", "0", "off", "false", "no"})


def cache_dir() -> Path:
    """The cache folder: BERTSMITH_CACHE, else below XDG_CACHE_HOME or ~/.cache.

    It exists and is writable on return. Without a usable home it is a private temporary folder.
    """
    chosen = os.environ.get("BERTSMITH_CACHE", "")
    if chosen:
        folder = Path(chosen).expanduser().absolute()
        problem = _unusable(folder)
        if problem:
            raise ConfigError(f"BERTSMITH_CACHE is {chosen!r}, which cannot be used: {problem}")
        return folder
    for folder in _cache_homes():
        problem = _unusable(folder / "bertsmith")
        if not problem:
            return folder / "bertsmith"
        log.info("cache folder %s cannot be used: %s", folder / "bertsmith", problem)
    return _private_temporary()


def hub_cache() -> Path:
    """The download cache of huggingface_hub, by its own rules; it need not exist."""
    below = {
        "HF_HUB_CACHE": "",
        "HUGGINGFACE_HUB_CACHE": "",
        "HF_HOME": "hub",
        "XDG_CACHE_HOME": "huggingface/hub",
    }
    for name, rest in below.items():
        value = os.path.expandvars(os.environ.get(name, ""))
        if value:
            return _expanded(value) / rest
    return _expanded("~/.cache") / "huggingface" / "hub"


def offline() -> bool:
    """Whether the network is switched off, by our variable or by one of the hub's."""
    names = ("BERTSMITH_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(_switch(name) for name in names)


def thread_count() -> int:
    """Number of threads: BERTSMITH_THREADS, else the processors that this process may use."""
    value = os.environ.get("BERTSMITH_THREADS", "").strip()
    if not value:
        return processors()
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= MOST_THREADS:
        raise ConfigError(
            f"BERTSMITH_THREADS is {value!r}; give a whole number from 1 to {MOST_THREADS}"
        )
    return int(value)


def processors() -> int:
    """Processors by affinity, lowered to the quota of the control group (containers)."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _group_quota(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(1, allowed if quota is None else min(allowed, math.ceil(quota)))


def code_path_variables() -> dict[str, str]:
    """The set variables that change which machine code torch runs."""
    return {name: os.environ[name] for name in CODE_PATH_VARIABLES if os.environ.get(name)}


def chosen_compiler() -> str:
    """The C++ compiler named by CXX, or an empty string."""
    return os.environ.get("CXX", "").strip()


def is_rank() -> bool:
    """Whether torchrun, or a launcher like it, started this process as one of several."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def inherited() -> dict[str, str]:
    """A copy of the whole environment, to start a child process from."""
    return dict(os.environ)


def _switch(name: str) -> bool:
    """A boolean variable; any other value of one of ours is an error."""
    value = os.environ.get(name, "").strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    if name.startswith("BERTSMITH_"):
        raise ConfigError(f"{name} is {value!r}; write 1 or 0")
    return False  # the hub's own variables: whatever the hub does not take for true is false


def _expanded(path: str) -> Path:
    """The path with ~ filled in, or unchanged when the home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _cache_homes() -> list[Path]:
    homes = []
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the XDG rules ignore a relative path
        homes.append(Path(xdg))
    try:
        home = Path.home()
    except RuntimeError:  # no HOME and no entry in the password file
        return homes
    if home.is_absolute() and home != Path("/"):
        homes.append(home / ".cache")
    return homes


def _unusable(folder: Path) -> str | None:
    """Makes the folder if need be; why it cannot be written, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        return error.strerror or type(error).__name__
    if not os.access(folder, os.W_OK | os.X_OK):
        return "no permission to write there"
    return None


@lru_cache(maxsize=1)
def _private_temporary() -> Path:
    """A folder of ours alone under the temporary folder, refused if anyone else could own it."""
    user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"bertsmith-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()  # not stat: a symlink planted by somebody else must not pass
    except OSError as error:
        log.info("temporary folder %s cannot be used: %s", folder, error.strerror)
        return Path(tempfile.mkdtemp(prefix="bertsmith-"))
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if private and status.st_uid == user:
        return folder
    log.warning("%s is not a private folder of this user; using a new one for this run", folder)
    return Path(tempfile.mkdtemp(prefix="bertsmith-"))


def _group_quota(membership: Path, root: Path) -> float | None:
    """The smallest processor quota on the way up the control-group tree, if there is one."""
    try:
        lines = membership.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        parts = line.split(":", 2)
        if len(parts) < 3:
            continue
        controllers, path = parts[1:]
        if controllers == "":
            base, read = root, _quota_v2
        elif "cpu" in controllers.split(","):
            base, read = root / "cpu", _quota_v1
        else:
            continue
        inside = Path(path.lstrip("/"))
        for folder in (inside, *inside.parents):  # inside a container only the root may be visible
            quota = read(base / folder)
            if quota is not None:
                quotas.append(quota)
    return min(quotas, default=None)


def _quota_v2(folder: Path) -> float | None:
    """`cpu.max` holds "quota period", or "max period" for no limit."""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_v1(folder: Path) -> float | None:
    """The older pair of files; a quota of -1 means no limit."""
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
