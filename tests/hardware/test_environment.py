"""Folders, switches and threads from the environment, on odd machines too."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from bertsmith.errors import ConfigError
from bertsmith.hardware import environment
from bertsmith.hardware.environment import cache_dir, hub_cache, offline, thread_count

NAMES = (
    *("BERTSMITH_CACHE", "BERTSMITH_OFFLINE", "BERTSMITH_THREADS", "XDG_CACHE_HOME", "HF_HOME"),
    *("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    environment._private_temporary.cache_clear()
    return tmp_path / "home"


def test_the_cache_is_found_in_the_documented_order(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_dir() == home / ".cache" / "bertsmith"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG rules: ignore it
    assert cache_dir() == home / ".cache" / "bertsmith"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert cache_dir() == home / "xdg" / "bertsmith"
    monkeypatch.setenv("BERTSMITH_CACHE", str(home / "mine"))
    assert cache_dir() == home / "mine"
    assert cache_dir().is_dir()


def test_a_chosen_cache_that_cannot_be_used_is_an_error_not_a_surprise(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("BERTSMITH_CACHE", str(home / "file"))
    with pytest.raises(ConfigError, match="BERTSMITH_CACHE"):
        cache_dir()


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_without_a_usable_home_the_cache_is_a_private_temporary_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("HOME", str(home / "file"))
    folder = cache_dir()
    assert folder.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_dir() == folder


@pytest.mark.skipif(os.name != "posix", reason="permissions")
@pytest.mark.parametrize("plant", ["open folder", "link", "file"])
def test_a_temporary_folder_that_others_planted_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, plant: str
) -> None:
    monkeypatch.setenv("HOME", "/")
    planted = Path(tempfile.gettempdir()) / f"bertsmith-{os.getuid()}"
    if plant == "open folder":
        planted.mkdir()
        planted.chmod(0o777)
    elif plant == "link":
        (home / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(home / "elsewhere")
    else:
        planted.write_text("")
    folder = cache_dir()
    assert folder != planted
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_that_is_unset_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache_dir().is_dir()
    hub_cache()


def test_the_hub_cache_follows_the_rules_of_the_hub(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub_cache() == home / ".cache" / "huggingface" / "hub"
    for name, value, expected in [
        ("XDG_CACHE_HOME", "/x", "/x/huggingface/hub"),
        ("HF_HOME", "~/hf", str(home / "hf" / "hub")),
        ("HUGGINGFACE_HUB_CACHE", "/old", "/old"),
        ("HF_HUB_CACHE", "/new", "/new"),
    ]:
        monkeypatch.setenv(name, value)
        assert hub_cache() == Path(expected)


@pytest.mark.parametrize("name", ["BERTSMITH_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_each_switch_takes_us_offline(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not offline()
    monkeypatch.setenv(name, "0")
    assert not offline()
    monkeypatch.setenv(name, "True")
    assert offline()


def test_a_switch_of_ours_that_is_neither_yes_nor_no_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BERTSMITH_OFFLINE", "maybe")
    with pytest.raises(ConfigError, match="write 1 or 0"):
        offline()


def test_threads_are_what_is_asked_or_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
    monkeypatch.setenv("BERTSMITH_THREADS", "3")
    assert thread_count() == 3


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "٣", "99999"])
def test_a_number_of_threads_that_is_none_is_an_error(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTSMITH_THREADS", value)
    with pytest.raises(ConfigError, match="BERTSMITH_THREADS"):
        thread_count()


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b\n", {"cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ("0::/a\n", {"cpu.max": "400000 100000", "a/cpu.max": "300000 100000"}, 3.0),
        ("0::/a\n", {"a/cpu.max": "max 100000"}, None),
        ("0::/a\n", {"cpu.max": "garbage"}, None),
        (
            "3:cpu,cpuacct:/a\n2:memory:/\n",
            {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"},
            2.0,
        ),
        ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("nonsense", {}, None),
    ],
)
def test_the_quota_of_a_container_is_read(
    tmp_path: Path, membership: str, files: dict[str, str], quota: float | None
) -> None:
    root = tmp_path / "cgroup"
    (tmp_path / "self").write_text(membership)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert environment._group_quota(tmp_path / "self", root) == quota


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert environment._group_quota(tmp_path / "none", tmp_path) is None
