"""Vectors of words: equal to ELMo's own reader, whatever the batch; embed --words; bad input."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import run
from folder_models import tiny_model, tiny_tokenizer
from word_encoders import elmo_folder, vector_file

import bertsmith
from bertsmith.classic.elmo.folder import open_reader
from bertsmith.classic.stream.splitting import SplitRule, WordSplitter
from bertsmith.errors import ConfigError, FolderError, TensorMismatchError
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.folders.write import save_model
from bertsmith.text.encoding import UnknownTokens
from bertsmith.text.whole_words.rule import WordRule

TEXTS = [
    "The bank raised its rates, again!",
    "苹果很好吃,香蕉也不错。",
    "a",
    "",
    "Naïve internationalizations don't end " + "x" * 60,
    "x\u0301y İstanbul's \U00020000\U00020001 end",
]


def test_layers_equal_those_of_the_reader_of_elmo(tmp_path: Path) -> None:
    folder = elmo_folder(tmp_path / "elmo")
    found = bertsmith.load_words(folder).words(TEXTS)
    wanted = open_reader(folder).read([list(one.words) for one in found])
    assert [one.layers.shape[1] for one in found] == [8, 12, 1, 0, 5, 5]
    for one, layers in zip(found, wanted, strict=True):
        assert one.layers.shape == layers.shape
        assert np.abs(one.layers - layers).max(initial=0.0) < 1e-5


def test_neighbors_in_a_batch_change_nothing(tmp_path: Path) -> None:
    embedder = bertsmith.load_words(elmo_folder(tmp_path / "elmo"))
    together = embedder.words(TEXTS)
    for text, one in zip(TEXTS, together, strict=True):
        (alone,) = embedder.words([text])
        assert alone.words == one.words
        assert np.abs(alone.layers - one.layers).max(initial=0.0) < 1e-5


def test_the_same_word_has_another_vector_in_another_sentence_and_the_same_own_one(
    tmp_path: Path,
) -> None:
    embedder = bertsmith.load_words(elmo_folder(tmp_path / "elmo"))
    first, second = embedder.words(["the river bank", "the bank account"])
    own, above = first.layers[0, 2] - second.layers[0, 1], first.layers[2, 2] - second.layers[2, 1]
    assert np.abs(own).max() < 1e-6
    assert np.abs(above).max() > 1e-2


@pytest.mark.parametrize("segmenter", ["character", "jieba"])
def test_words_are_those_of_the_stream_that_models_are_trained_on(segmenter: str) -> None:
    lines = [text for text in TEXTS if text]
    splitter = WordSplitter(SplitRule(segmenter=segmenter))
    split = splitter.split(lines)
    names = ["", *split.new]
    wanted, at = [], 0
    for size in split.lengths.tolist():
        wanted.append([names[number] for number in split.numbers[at : at + size].tolist()])
        at += size
    rule = WordRule(segmenter=segmenter)
    assert [[line[a:b] for a, b in rule.spans(line)] for line in lines] == wanted


def test_words_longer_than_the_model_reads_are_counted(tmp_path: Path) -> None:
    count = UnknownTokens()
    bertsmith.load_words(elmo_folder(tmp_path / "elmo")).words(TEXTS, unknown=count)
    assert (count.tokens, count.unknown) == (31, 2)  # 21 and 60 bytes, of 18 that are read
    assert str(count).startswith("warning: words read in part (of more than 18 bytes): 2 of 31")


def test_word_vectors_are_read_from_a_file_and_unknown_words_are_0_and_counted(
    tmp_path: Path,
) -> None:
    path = vector_file(tmp_path / "vectors.txt")
    words, matrix = read_word_vectors(path)
    count = UnknownTokens()
    (found,) = bertsmith.load_words(path).words(["Anna sees a zebra"], unknown=count)
    assert found.layers.shape == (1, 4, 12)
    assert np.array_equal(found.layers[0, 0], matrix[words.index("Anna")])
    assert not found.layers[0, 3].any()
    assert (count.tokens, count.unknown) == (4, 1)


def test_vectors_without_capitals_are_found_for_any_case(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("anna 1 2\nbank 3 4\n", encoding="utf-8")
    (found,) = bertsmith.load_words(path).words(["Anna BANK"])
    assert found.layers[0].tolist() == [[1, 2], [3, 4]]
    assert found.words == ("Anna", "BANK")


def test_embed_writes_a_row_per_word_and_the_list_of_the_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = elmo_folder(tmp_path / "elmo", segmenter="jieba")
    (tmp_path / "texts.txt").write_text("The bank, again\n苹果很好吃\n", encoding="utf-8")
    out = tmp_path / "words.npy"
    assert (
        run("embed", folder, tmp_path / "texts.txt", "--words", "--layer", "all", "--out", out) == 0
    )
    rows = (tmp_path / "words.npy.words.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[:3] == ["text\tstart\tend\tword", "1\t0\t3\tThe", "1\t4\t8\tbank"]
    assert [row.split("\t")[3] for row in rows[5:]] == ["苹果", "很", "好吃"]
    found = bertsmith.load_words(folder).words(["The bank, again", "苹果很好吃"])
    wanted = np.concatenate([one.vectors("all") for one in found])
    assert np.array_equal(np.load(out), wanted)
    assert "7 words of 2 texts x 42" in capsys.readouterr().err


def test_embed_without_words_says_what_such_a_folder_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = elmo_folder(tmp_path / "elmo")
    (tmp_path / "texts.txt").write_text("The bank\n", encoding="utf-8")
    out = tmp_path / "v.npy"
    assert run("embed", folder, tmp_path / "texts.txt", "--out", out) != 0
    assert "--words" in capsys.readouterr().err
    assert run("embed", folder, tmp_path / "texts.txt", "--layer", "1", "--out", out) != 0
    assert "give --words with it" in capsys.readouterr().err
    assert not out.exists()


def test_a_layer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (found,) = bertsmith.load_words(elmo_folder(tmp_path / "elmo")).words(["a bank"])
    with pytest.raises(ConfigError, match="no layer 3; the encoder has 3"):
        found.vectors(3)


def test_hdf5_of_the_wrong_shape_is_refused_by_the_name_of_its_tensor(tmp_path: Path) -> None:
    folder = elmo_folder(tmp_path / "elmo")
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["CNN_proj/W_proj"]
        file["CNN_proj/W_proj"] = np.zeros((3, 3), dtype=np.float32)
    with pytest.raises(TensorMismatchError, match="CNN_proj/W_proj has shape"):
        bertsmith.load_words(folder)


@pytest.mark.parametrize(
    "command",
    [
        ("fill", "a [MASK]"),
        ("generate", "a text"),
        ("lm score", "TEXTS"),
        ("tokenize", "a text"),
        ("predict", "a text"),
    ],
)
def test_what_an_encoder_of_words_cannot_do_is_refused_by_name(
    tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = elmo_folder(tmp_path / "elmo")
    (tmp_path / "TEXTS").write_text("a text\n", encoding="utf-8")
    name, *rest = command
    rest = [str(tmp_path / "TEXTS") if one == "TEXTS" else one for one in rest]
    assert run(*name.split(), folder, *rest) != 0
    said = capsys.readouterr().err
    assert "encoder of words" in said or "was not fine-tuned" in said


def test_info_of_an_encoder_of_words_says_what_it_can_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("info", elmo_folder(tmp_path / "elmo")) == 0
    printed = capsys.readouterr().out
    assert "encoder of words" in printed
    assert "words" in printed.split("abilities", 1)[1].splitlines()[0]


def test_load_words_of_another_model_names_load(tmp_path: Path) -> None:
    save_model(tiny_model("bert"), tiny_tokenizer(), tmp_path / "bert")
    with pytest.raises(FolderError, match=r"`bertsmith\.load` opens other models"):
        bertsmith.load_words(tmp_path / "bert")


def test_words_that_are_pieces_of_a_tokenizer_are_refused(tmp_path: Path) -> None:
    folder = elmo_folder(tmp_path / "elmo")
    stored = (folder / "splitter.json").read_text(encoding="utf-8")
    (folder / "splitter.json").write_text(
        stored.replace('"pieces": false', '"pieces": true'), encoding="utf-8"
    )
    with pytest.raises(FolderError, match=r"splitter\.json: its words are the pieces"):
        bertsmith.load_words(folder)


def test_a_folder_of_words_train_is_read_with_its_rule(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The bank raised its rates.\n" * 20, encoding="utf-8")
    out = tmp_path / "vectors"
    options = ("--lower", "--dim", "8", "--epochs", "1", "--engine", "torch", "--threads", "1")
    assert run("words", "train", text, "--min-count", "1", *options, "--out", out) == 0
    (found,) = bertsmith.load_words(out).words(["THE bank, its"])
    words, matrix = read_word_vectors(out)
    assert found.words == ("THE", "bank", ",", "its")
    assert np.array_equal(found.layers[0, 0], matrix[words.index("the")])
    assert not found.layers[0, 2].any()
