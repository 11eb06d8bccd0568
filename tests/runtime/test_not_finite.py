"""No NaN leaves a model: weights that overflow are named, and so is the text or the row."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import run
from safetensors.torch import load_file, save_file

import bertsmith
from bertsmith.errors import FolderError, TensorMismatchError
from bertsmith.runtime.embedder import EncodingAccount

pytestmark = pytest.mark.usefixtures("edited_folders")


@pytest.fixture
def fine_tuned(classifier: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(classifier, tmp_path / "model"))


def spoil(folder: Path, value: float, dtype: torch.dtype) -> str:
    """Put large numbers into the last feed-forward layer; its name."""
    weights = load_file(folder / "model.safetensors")
    name = sorted(one for one in weights if one.endswith("output.dense.weight"))[-1]
    weights[name] = torch.full_like(weights[name], value, dtype=dtype)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return name


def test_weights_that_overflow_as_float32_are_refused_by_name(fine_tuned: Path) -> None:
    name = spoil(fine_tuned, 1e300, torch.float64)  # finite, as it is stored
    with pytest.raises(TensorMismatchError, match=rf"{name} holds .* range of float32"):
        bertsmith.load(fine_tuned)


def test_vectors_that_overflow_are_refused_with_the_text(fine_tuned: Path) -> None:
    spoil(fine_tuned, 3e38, torch.float32)
    with bertsmith.load(fine_tuned, precision="fp32") as model:
        with pytest.raises(FolderError, match=r"text 1, 'a bird': .* not finite"):
            model.encode(["a bird", "a tree"])
        with pytest.raises(FolderError, match=r"input, line 1: .* not finite"):
            model.predict(["a bird"])


def test_commands_stop_where_an_output_is_not_finite(
    fine_tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(fine_tuned, 3e38, torch.float32)
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na bird,yes\na stone,no\n")
    out = tmp_path / "out.jsonl"
    for arguments in (
        ("predict", fine_tuned, "a bird", "--json"),
        ("predict", fine_tuned, rows, "--out", out),
        ("embed", fine_tuned, rows, "--text", "text", "--out", tmp_path / "out.npy"),
        ("evaluate", fine_tuned, rows),
    ):
        assert run(*arguments, "--precision", "fp32") == 2, arguments
        shown = capsys.readouterr()
        assert "not finite" in shown.err
        assert "nan" not in shown.out.lower()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.csv"]


def test_unknown_tokens_are_counted_and_warned_of(
    fine_tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = bertsmith.load(fine_tuned, precision="fp32")
    account = EncodingAccount()
    model.encode(["bird tree", "你好 bird", "bird tree"], account=account)
    assert (account.unknown.tokens, account.unknown.unknown) == (5, 2)  # of distinct texts
    rows = tmp_path / "rows.csv"
    lines = [f"你好世界 {n},yes\n坏鸟 {n},no\n" for n in range(40)]
    rows.write_text("text,label\n" + "".join(lines), encoding="utf-8")
    share = "unknown tokens ([UNK]): "
    for arguments in (
        ("predict", fine_tuned, rows, "--out", tmp_path / "out.csv"),
        ("predict", fine_tuned, "你好"),
        ("embed", fine_tuned, rows, "--text", "text", "--out", tmp_path / "out.npy"),
        ("tokenize", fine_tuned, "你好"),
        ("finetune", rows, "--model", fine_tuned, "--out", tmp_path / "run", "--epochs", "1"),
    ):
        assert run(*arguments) == 0, arguments
        assert f"warning: {share}" in capsys.readouterr().err, arguments
    rows.write_text("text,label\nbird tree,yes\n")
    assert run("predict", fine_tuned, rows, "--out", tmp_path / "out.csv") == 0
    assert f"{share}0 of 2\n" in capsys.readouterr().err


def test_vectors_can_be_normalized_and_batches_limited(fine_tuned: Path) -> None:
    model = bertsmith.load(fine_tuned, precision="fp32")
    texts = ["a bird", "a tree and a stone", "river"]
    plain = model.encode(texts)
    unit = model.encode(texts, normalize=True)
    assert np.allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    assert np.allclose(model.encode(texts, batch_size=1), plain, atol=1e-6)


def test_a_row_of_another_number_of_texts_is_refused(
    fine_tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((fine_tuned / "bertsmith.json").read_bytes())
    assert record["task"]["texts"] == 1
    with pytest.raises(bertsmith.BertsmithError, match="trained on 1 text per row, and 2 were"):
        bertsmith.predict(fine_tuned, ["a bird", ("a bird", "a tree")])
    assert run("predict", fine_tuned, "a bird", "--pair", "a tree") == 2
    assert "trained on 1 text per row, and 2 were given" in capsys.readouterr().err
    record["task"]["texts"] = 2
    (fine_tuned / "bertsmith.json").write_text(json.dumps(record))
    with pytest.raises(bertsmith.BertsmithError, match="trained on 2 texts per row, and 1 were"):
        bertsmith.predict(fine_tuned, ["a bird"])
