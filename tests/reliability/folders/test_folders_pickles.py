"""B1, B7: a malicious pickle never executes, whatever it is called and whoever opens the folder."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from folder_making import tiny_folder, tiny_shapes
from hostile_pickles import hostile_pickles

from bertsmith.errors import BertsmithError, FolderError, UnsafeFileError
from bertsmith.folders import unpickle
from bertsmith.folders.convert import convert
from bertsmith.folders.describe import describe
from bertsmith.folders.read import load_model, load_tokenizer, read_folder
from bertsmith.folders.resolve import resolve

pytestmark = pytest.mark.reliability

NAMES = (
    "model.safetensors",
    "pytorch_model.bin",
    "config.json",
    "vocab.txt",
    "tokenizer.json",
    "modules.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "model.safetensors.index.json",
    "sentence_bert_config.json",
)
ALARMS = {"os.system", "subprocess.Popen", "pickle.find_class", "os.exec", "os.posix_spawn"}
heard: list[str] = []
listening = [False]


def _listen(event: str, _: tuple[object, ...]) -> None:
    if listening[0] and event in ALARMS:
        heard.append(event)


sys.addaudithook(_listen)


@pytest.fixture
def alarm() -> Iterator[list[str]]:
    """Everything that data never does, as long as the test runs."""
    heard.clear()
    listening[0] = True
    yield heard
    listening[0] = False


def _describe(path: Path) -> object:
    return describe(path, hashes=True)


ENTRIES: dict[str, Callable[[Path], object]] = {
    "load_model": load_model,
    "load_tokenizer": load_tokenizer,
    "read_folder": read_folder,
    "describe": _describe,
    "convert": lambda path: convert(path, path.parent / f"out-{path.name}", check=True),
    "resolve": resolve,
}


def test_the_hostile_files_are_live(tmp_path: Path) -> None:
    for kind in ("raw, protocol 2", "raw, eval", "opcodes by hand", "stack global", "state dict"):
        marker = tmp_path / kind.replace(" ", "-")
        pickle.loads(hostile_pickles(marker)[kind])
        assert marker.exists(), kind


def test_no_entry_point_opens_a_hostile_file_of_any_name(tmp_path: Path, alarm: list[str]) -> None:
    marker = tmp_path / "executed"
    files = hostile_pickles(marker)
    assert len(files) >= 24
    alarm.clear()  # making the files has imported what it needed
    tried = 0
    for number, (kind, content) in enumerate(files.items()):
        name = NAMES[number % len(NAMES)]
        for renamed in {name, "model.safetensors", "pytorch_model.bin"}:
            folder = tiny_folder(tmp_path / f"{number}-{renamed}")
            if renamed == "pytorch_model.bin":
                (folder / "model.safetensors").unlink()
            (folder / renamed).write_bytes(content)
            for entry, call in ENTRIES.items():
                start = time.thread_time()  # of work: a busy machine only makes it wait
                try:
                    call(folder)
                except BertsmithError as fault:
                    said = str(fault)
                    assert str(folder) in said, (kind, renamed, entry, said)
                assert time.thread_time() - start < 2.0, (kind, renamed, entry)
                assert not marker.exists(), (kind, renamed, entry)
                tried += 1
    assert alarm == []
    assert tried > 400


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_every_weights_file_that_is_a_pickle_is_refused_by_load(
    name: str, tmp_path: Path, alarm: list[str]
) -> None:
    files = hostile_pickles(tmp_path / "executed")
    alarm.clear()
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    for content in files.values():
        (folder / name).write_bytes(content)
        with pytest.raises(FolderError, match=name.replace(".", r"\.")):
            load_model(folder)
    assert alarm == []
    assert not (tmp_path / "executed").exists()


def weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(shape, generator=generator) for name, shape in tiny_shapes().items()}


def saved(value: object, *, zipped: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


def answers(path: Path, files: dict[str, bytes]) -> dict[str, dict[str, object]]:
    """What one confined child says to each of these files, by name."""
    path.mkdir()
    for number, content in enumerate(files.values()):
        (path / str(number)).write_bytes(content)
    code = (
        "import json, sys\n"
        "from bertsmith.folders import pickle_child as child\n"
        "child.confine(1 << 30, 60)\n"
        f"for number in range({len(files)}):\n"
        "    with open(str(number), 'rb') as file:\n"
        "        print(json.dumps(child.answer_for(file, f'{number}.safetensors')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(files, map(json.loads, done.stdout.splitlines()), strict=True))


def test_the_child_refuses_hostile_files_without_running_them(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    for kind, answer in answers(tmp_path / "files", hostile_pickles(marker)).items():
        assert "error" in answer, (kind, answer)
    assert not marker.exists()
    assert not list((tmp_path / "files").glob("*.safetensors"))


def test_the_child_takes_plain_tensors_of_every_form(tmp_path: Path) -> None:
    wrapped = {name: torch.nn.Parameter(tensor) for name, tensor in weights().items()}
    files = {
        "zip": saved(weights()),
        "legacy": saved(weights(), zipped=False),
        "parameters": saved(wrapped),
        "checkpoint": saved({"state_dict": weights(), "epoch": 3, "optimizer": {"lr": 0.1}}),
        "tied": saved({"a": (tensor := torch.ones(3)), "b": tensor}),
        "turned": saved({"a": torch.ones(3, 4).T}),
    }
    for kind, answer in answers(tmp_path / "files", files).items():
        assert set(answer) == {"tensors"}, (kind, answer)


def test_the_child_refuses_what_is_no_map_of_tensors(tmp_path: Path) -> None:
    files = {
        "a tensor alone": saved(torch.ones(3)),
        "a list": saved([torch.ones(3)]),
        "nothing": saved({}),
        "a number among tensors": saved({"a": torch.ones(1), "b": 3}),
        "numbered keys": saved({1: torch.ones(1)}),
        "a sparse tensor": saved({"a": torch.eye(3).to_sparse()}),
        "text": b"hello",
        "empty": b"",
    }
    for kind, answer in answers(tmp_path / "files", files).items():
        assert set(answer) == {"error"}, (kind, answer)


def test_the_child_refuses_a_compressed_archive_before_it_grows(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved({"a": torch.zeros(1 << 20)}))) as plain,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for item in plain.namelist():
            archive.writestr(item, plain.read(item))
    (answer,) = answers(tmp_path / "files", {"packed": packed.getvalue()}).values()
    assert "compressed archive" in str(answer["error"])


def test_a_plain_pickle_becomes_a_safe_folder(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    old = {f"module.bert.{name}": tensor for name, tensor in weights().items()}
    (folder / "pytorch_model.bin").write_bytes(saved({"state_dict": old}))
    report = convert(folder, tmp_path / "out", from_pickle=True, check=True)
    assert report.equal
    loaded = load_model(tmp_path / "out").model
    expected = weights()["embeddings.word_embeddings.weight"]
    assert torch.equal(loaded.encoder.embeddings.tokens.weight, expected)


def test_a_hostile_pickle_is_refused_by_convert_too(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    hostile = hostile_pickles(tmp_path / "executed")["torch zip"]
    (folder / "pytorch_model.bin").write_bytes(hostile)
    with pytest.raises(
        UnsafeFileError, match=r"pytorch_model\.bin is not a plain file of tensors"
    ) as caught:
        convert(folder, tmp_path / "out", from_pickle=True)
    assert "it would load " in str(caught.value)
    assert "weights_only" not in str(caught.value)  # torch's own advice is to load it unchecked
    assert not (tmp_path / "executed").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "data", [b"\x80\x04.", b"\x80\x02K\x01.", b"PK\x03\x04" + b"\0" * 99, b"x" * 99]
)
def test_a_damaged_pickle_is_refused_in_our_words(tmp_path: Path, data: bytes) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(data)
    with pytest.raises(UnsafeFileError, match="not a plain file of tensors") as caught:
        convert(folder, tmp_path / "out", from_pickle=True)
    assert "weights_only" not in str(caught.value)
    assert "torch.load" not in str(caught.value)


@pytest.mark.slow
def test_pickled_shards_become_one_safe_file(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    names = list(weights())
    parts = {"pytorch_model-1.bin": names[:9], "pytorch_model-2.bin": names[9:]}
    for file, part in parts.items():
        torch.save({name: weights()[name] for name in part}, folder / file)
    places = {name: file for file, part in parts.items() for name in part}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    convert(folder, tmp_path / "out", from_pickle=True)
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_a_child_that_dies_or_hangs_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    torch.save(weights(), folder / "pytorch_model.bin")
    real = subprocess.run

    def killed(command: list[str], **named: object) -> object:
        return real(["sh", "-c", "kill -SEGV $$"], **named)  # type: ignore[call-overload]

    def slow(command: list[str], **named: object) -> object:
        return real(["sleep", "30"], **{**named, "timeout": 0.1})  # type: ignore[call-overload]

    def silent(command: list[str], **named: object) -> object:
        return real(["true"], **named)  # type: ignore[call-overload]

    for fake, said in ((killed, "SIGSEGV"), (slow, "took more"), (silent, "refused")):
        monkeypatch.setattr(unpickle.subprocess, "run", fake)
        with pytest.raises(UnsafeFileError, match=said):
            convert(folder, tmp_path / "out", from_pickle=True)


FAULTS = [
    RuntimeError,
    MemoryError,
    OSError,
    ValueError,
    KeyError,
    ImportError,
    UnicodeDecodeError,
    RecursionError,
    EOFError,
    AttributeError,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("place", ["read_header", "open", "parse_json"])
def test_no_failure_of_the_safe_path_leads_to_an_unsafe_one(
    fault: type[Exception], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder(tmp_path / "m")
    torch.save(weights(), folder / "pytorch_model.bin")  # a tempting way out
    opened: list[object] = []
    monkeypatch.setattr(torch, "load", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(pickle, "load", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(pickle, "loads", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(unpickle.subprocess, "run", lambda *a, **k: opened.append(a))

    def failing(*given: object, **named: object) -> object:
        raise fault(*(("utf-8", b"", 0, 1, "x") if fault is UnicodeDecodeError else ("planted",)))

    targets = {
        "read_header": "bertsmith.folders.tensors.read_header",
        "open": "bertsmith.files.safe_folder.os.open",
        "parse_json": "bertsmith.files.safe_folder.parse_json",
    }
    with monkeypatch.context() as patch:
        patch.setattr(targets[place], failing)
        with pytest.raises((fault, BertsmithError)):
            load_model(folder)
    assert opened == []
