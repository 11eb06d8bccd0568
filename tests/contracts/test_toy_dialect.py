"""A layout of model folders of one's own: converted to ours without a line of the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from folder_models import WORDS, same_weights, tiny_model, tiny_tokenizer
from safetensors.torch import save_file

from bertsmith.errors import FolderError
from bertsmith.folders.convert import convert
from bertsmith.folders.dialects.dialect import Dialect
from bertsmith.folders.dialects.transformers import DIALECTS
from bertsmith.folders.read import load_model
from bertsmith.folders.tensors import open_weights_file
from bertsmith.folders.write import save_model
from bertsmith.text.tokenizer import Tokenizer

KEYS = {"width": "hidden_size", "depth": "num_hidden_layers"}  # by ours: published


def stored_as(name: str) -> str:
    return "net/" + name.replace(".", "/")


def published(stored: str) -> str | None:
    return stored.removeprefix("net/").replace("/", ".") if stored.startswith("net/") else None


TOY = Dialect(
    name="toy",
    finds=lambda folder: folder.has("toy.json"),
    config=lambda folder: {
        KEYS.get(key, key): value for key, value in folder.json_object("toy.json").items()
    },
    tokenizer=lambda folder: Tokenizer.from_files(
        {"vocab.txt": "\n".join(folder.json_object("words.json")["words"]).encode()}
    ),
    opener=lambda folder: open_weights_file(folder, "toy.safetensors", source="toy.json"),
    names=published,
)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder of the toy's program, of the weights of `tmp_path / "ours"`."""
    ours, folder = tmp_path / "ours", tmp_path / "toy"
    save_model(tiny_model(heads=["masked_lm"]), tiny_tokenizer(), ours)
    folder.mkdir()
    config = json.loads((ours / "config.json").read_text())
    renamed = {ours: theirs for theirs, ours in KEYS.items()}
    toy = {renamed.get(key, key): value for key, value in config.items()}
    (folder / "toy.json").write_text(json.dumps(toy))
    (folder / "words.json").write_text(json.dumps({"words": WORDS}))
    from safetensors import safe_open

    with safe_open(ours / "model.safetensors", "pt") as file:
        tensors = {stored_as(name): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file({**tensors, "step": torch.ones(1)}, folder / "toy.safetensors")
    return folder


def test_it_converts_and_gives_the_same_numbers(toy: Path, tmp_path: Path) -> None:
    report = convert(toy, tmp_path / "out", dialects=(TOY, *DIALECTS), check=True)
    assert (report.variant, report.heads, report.equal) == ("bert", ("masked_lm",), True)
    ours, converted = load_model(tmp_path / "ours"), load_model(tmp_path / "out")
    assert same_weights(ours.model, converted.model)
    assert converted.tokenizer.encode("a b 字").ids.tolist() == (
        ours.tokenizer.encode("a b 字").ids.tolist()
    )


def test_it_is_read_in_place_and_ours_still_is(toy: Path, tmp_path: Path) -> None:
    for folder in (toy, tmp_path / "ours"):
        found = load_model(folder, dialects=(TOY, *DIALECTS))
        assert same_weights(found.model, load_model(tmp_path / "ours").model)
    assert load_model(toy, dialects=(TOY,)).folder.dialect is TOY


def test_without_the_dialect_the_folder_is_no_model(toy: Path) -> None:
    with pytest.raises(FolderError, match=r"no config\.json"):
        load_model(toy)


def test_two_tensors_of_one_name_are_refused(toy: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    odd = replace(TOY, names=lambda stored: "bert.pooler.dense.bias")
    with pytest.raises(FolderError, match=r"two tensors are bert\.pooler\.dense\.bias"):
        convert(toy, tmp_path / "out", dialects=(odd,))
