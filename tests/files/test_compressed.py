"""Every reader of every command takes plain, .gz and .zst files alike."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertsmith.corpus.reading import documents_of, read_blocks
from bertsmith.corpus.sources import find_sources
from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.labeled import DataSpec, guess_spec, read_examples
from bertsmith.labeled.read.reader import SourceRows
from bertsmith.labeled.split.splits import load_splits
from bertsmith.labeled.texts import read_texts

TEXTS = [f"Das Wetter ist heute schön, sagt Nummer {n}." for n in range(40)]
ROWS = [(text, "ab"[n % 2]) for n, text in enumerate(TEXTS)]
FILES = {
    "a.txt": "".join(f"{text}\n" for text in TEXTS),
    "a.tsv": "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS),
    "a.csv": "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in ROWS),
    "a.jsonl": "".join(json.dumps({"text": t, "label": label}) + "\n" for t, label in ROWS),
    "a.json": json.dumps([{"text": t, "label": label} for t, label in ROWS]),
}
TABLES = ("a.tsv", "a.csv", "a.jsonl")


def of_texts(path: Path) -> list[str]:
    """embed, vocab, mask, score."""
    return list(read_texts(path))


def of_corpus(path: Path) -> list[str]:
    """corpus build."""
    (source,) = find_sources([path])
    return [
        sentence
        for block in read_blocks(source)
        for sentence in documents_of(block, "stop").sentences
    ]


def of_examples(path: Path) -> list[str]:
    """finetune, evaluate, lengths, vectors."""
    examples = list(read_examples(path))
    assert [example.target for example in examples] != [None] * len(examples)
    return [example.texts[0] for example in examples]


def of_predictions(path: Path) -> list[str]:
    """predict: rows with all their columns."""
    spec = guess_spec(path, given=DataSpec(task="classify"))
    rows = list(SourceRows(path, spec))
    assert [source.cell("label") for _, source in rows] == [label for _, label in ROWS]
    return [example.texts[0] for example, _ in rows]


READERS = {
    of_texts: ("a.txt", *TABLES),
    of_corpus: ("a.txt", *TABLES),
    of_examples: (*TABLES, "a.json"),
    of_predictions: (*TABLES, "a.json"),
}


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    if suffix == ".zst":
        if importlib.util.find_spec("zstandard") is None:
            pytest.skip("zstandard is not installed")
        import zstandard

        return zstandard.ZstdCompressor().compress(data)
    return data


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize(
    ("reader", "name"), [(reader, name) for reader, names in READERS.items() for name in names]
)
def test_a_packed_file_is_read_like_the_plain_one(
    reader: Callable[[Path], list[str]], name: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(packed(FILES[name].encode(), suffix))
    assert reader(path) == TEXTS
    if suffix:
        path.write_bytes(path.read_bytes()[:-7])
        with pytest.raises(InputFileError, match=f"not a whole {suffix} file"):
            reader(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_splits_and_word_lists_may_be_packed(suffix: str, tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv{suffix}").write_bytes(packed(FILES["a.tsv"].encode(), suffix))
    assert len(load_splits(tmp_path).train) == len(TEXTS)
    words = tmp_path / f"words.txt{suffix}"  # of corpus vocab, mask, pretrain
    words.write_bytes(packed(b"New York\nPeking\n", suffix))
    assert list(text_lines(words)) == ["New York", "Peking"]
