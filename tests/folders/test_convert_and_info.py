"""`bertsmith convert` and `bertsmith info` as a user runs them."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import pytest
import torch
from folder_models import same_weights, tiny_model, tiny_tokenizer
from fresh_python import run_fresh
from safetensors.torch import load_file, save_file

from bertsmith.cli.app import main
from bertsmith.errors import WriteError
from bertsmith.folders import convert as converting
from bertsmith.folders.convert import convert
from bertsmith.folders.describe import describe
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.config.labels import Labels
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.models.variant import Head

pytestmark = pytest.mark.usefixtures("edited_folders")


def run(*arguments: str) -> int:
    log = logging.getLogger("bertsmith")
    handlers = list(log.handlers)
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    log.handlers[:] = handlers  # the command's own would outlive the captured stream
    return int(end.value.code or 0)


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    """A folder as 2019 wrote them: gamma and beta, a prefix, a vocabulary, extra keys."""
    path = tmp_path / "old"
    save_model(tiny_model(), tiny_tokenizer(), path, sentence=SentenceSettings(normalize=True))
    tensors = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma"): tensor
        for name, tensor in load_file(path / "model.safetensors").items()
    }
    save_file(tensors, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "color": "blue"}))
    for name in ("tokenizer.json", "special_tokens_map.json", "bertsmith.json"):
        (path / name).unlink()
    return path


def test_convert_check_rewrites_and_compares_every_layer(
    old_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", str(old_folder), str(tmp_path / "new"), "--verify") == 0
    out = capsys.readouterr().out
    assert "embeddings\tmax difference 0\t" in out
    assert "layer 2\tmax difference 0\t" in out
    assert "check\tequal" in out
    assert "keys not carried over\tcolor" in out
    assert same_weights(load_model(tmp_path / "new").model, tiny_model())
    assert load_model(tmp_path / "new").sentence.normalize
    assert (tmp_path / "new" / "tokenizer.json").exists()
    assert "color" not in (tmp_path / "new" / "config.json").read_text()


def test_convert_check_fails_when_the_numbers_differ(
    old_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spoiled(path: Path) -> object:
        loaded = load_model(path)
        with torch.no_grad():
            loaded.model.encoder.blocks[1].feed_forward.up.bias[0] += 0.01
        return loaded

    monkeypatch.setattr(converting, "load_model", spoiled)
    assert run("convert", str(old_folder), str(tmp_path / "new"), "--verify") == 1
    captured = capsys.readouterr()
    assert "check\tDIFFERENT" in captured.out
    assert "does not reproduce the hidden states" in captured.err


def test_convert_keeps_heads_labels_and_the_name_of_the_type(tmp_path: Path) -> None:
    model = tiny_model("roberta", [Head(kind="sequence", outputs=3)])
    labels = Labels(names=("bad", "so so", "good"))
    save_model(model, None, tmp_path / "a", labels=labels, model_type="xlm-roberta")
    report = convert(tmp_path / "a", tmp_path / "b", check=True)
    assert report.heads == ("sequence",)
    again = load_model(tmp_path / "b")
    assert again.folder.reading.model_type == "xlm-roberta"
    assert again.folder.reading.labels == labels
    assert same_weights(again.model, model)


def test_convert_in_place_is_possible_when_asked(old_folder: Path) -> None:
    assert run("convert", str(old_folder), str(old_folder)) == 2
    assert run("convert", str(old_folder), str(old_folder), "--overwrite", "--verify") == 0
    assert (old_folder / "bertsmith.json").exists()


def test_a_target_inside_the_source_or_around_it_is_refused(old_folder: Path) -> None:
    for target in (old_folder / "new", old_folder.parent):
        with pytest.raises(WriteError, match="inside each other"):
            convert(old_folder, target, overwrite=True)


def test_a_target_that_exists_is_refused_before_anything_is_read(
    old_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("x")
    monkeypatch.setattr(converting, "read_folder", lambda _: pytest.fail("was read"))
    with pytest.raises(WriteError, match="exists already"):
        convert(old_folder, tmp_path / "full")


def test_convert_says_errors_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", str(tmp_path / "no" / "such"), str(tmp_path / "new")) == 2
    assert capsys.readouterr().err.startswith("error: there is no folder")


def test_convert_to_transformers_refuses_what_it_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tiny_model("nezha"), tiny_tokenizer(), tmp_path / "nezha")
    assert run("convert", str(tmp_path / "nezha"), str(tmp_path / "x"), "--to", "transformers") == 2
    assert "transformers has no model type 'nezha'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    save_model(tiny_model("bert"), tiny_tokenizer(), tmp_path / "bert")
    assert run("convert", str(tmp_path / "bert"), str(tmp_path / "y"), "--to", "transformers") == 0


def test_info_of_the_installed_model_as_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", "all-MiniLM-L6-v2") == 0
    rows = dict(line.split("\t", 1) for line in capsys.readouterr().out.splitlines())
    assert rows["variant"] == "bert"
    assert rows["layers"] == "6"
    assert rows["hidden size"] == "384"
    assert rows["parameters"] == "22,713,216"
    assert rows["vocabulary"] == "30,522"
    assert rows["longest text"] == "256 tokens"
    assert rows["pooling"] == "mean"
    assert rows["normalized"] == "yes"
    assert rows["similarity"] == "cosine"
    assert rows["file model.safetensors"] == "90,868,376 bytes"


def test_info_as_json_with_hashes(old_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", str(old_folder), "--json", "--hashes") == 0
    found = json.loads(capsys.readouterr().out)
    data = (old_folder / "model.safetensors").read_bytes()
    entry = found["files"]["model.safetensors"]
    assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert found["unknown_keys"] == ["color"]
    assert found["tensors"] == 39
    assert found["shape"]["positions"] == {"kind": "learned", "rows": 24, "first": 0}
    assert found["problems"] == []


def test_info_says_when_there_is_only_a_pickle(
    old_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old_folder / "model.safetensors").rename(old_folder / "pytorch_model.bin")
    assert run("info", str(old_folder)) == 0
    assert "--from-pickle" in capsys.readouterr().err
    assert describe(old_folder).parameters is None


def test_info_keeps_control_characters_from_the_terminal(
    old_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((old_folder / "config.json").read_text())
    config["\x1b]0;owned\x07"] = 1
    (old_folder / "config.json").write_text(json.dumps(config))
    assert run("info", str(old_folder)) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_info_needs_no_torch() -> None:
    code = (
        "import sys\nfrom bertsmith.cli.commands.info import info\n"
        "assert not {'torch', 'numpy', 'tokenizers'} & set(sys.modules)\n"
        "info(name='all-MiniLM-L6-v2')\nassert 'torch' not in sys.modules\n"
    )
    run_fresh(code)


def test_the_convert_command_is_imported_without_torch() -> None:
    code = "import sys, bertsmith.cli.commands.convert\nassert 'torch' not in sys.modules\n"
    run_fresh(code)
