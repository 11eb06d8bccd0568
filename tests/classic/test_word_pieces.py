"""Pieces of a tokenizer as the words of a stream."""

from __future__ import annotations

from pathlib import Path

from bertsmith.classic.stream.stream import WordReading, WordStream, build_words
from bertsmith.text.tokenizer import Tokenizer


def test_pieces_are_words_and_the_tokenizer_stays_with_them(tmp_path: Path) -> None:
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "we"]
    tokenizer = Tokenizer.from_files({"vocab.txt": "".join(f"{n}\n" for n in names).encode()})
    (tmp_path / "text.txt").write_text("we playing\nplay zzz\n", encoding="utf-8")
    build_words(
        [tmp_path / "text.txt"],
        tmp_path / "words",
        tokenizer=tokenizer,
        reading=WordReading(form="sentences"),
    )
    stream = WordStream.open(tmp_path / "words")
    assert stream.words == ("<unk>", "play", "##ing", "we")
    assert stream.ids.tolist() == [3, 1, 2, 1, 0]
    assert stream.rule.tokenizer is not None
    assert stream.rule.tokenizer.vocab_size == len(names)
