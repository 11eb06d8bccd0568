"""The stream of words: what becomes a word, numbers by count, resume, refusals."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from bertsmith.classic.stream.splitting import SplitRule, WordSplitter
from bertsmith.classic.stream.stream import WordReading, WordStream, build_words
from bertsmith.errors import BertsmithError, ConfigError, FolderError, InputFileError, WriteError
from bertsmith.files import resumable_file
from bertsmith.text.segment import segmenter

SENTENCES = WordReading(split="spaces", form="sentences")
TEXT = "a b a\nc a b\n\n<unk> d a\n"


def written(folder: Path, text: str = TEXT, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def split(text: str, rule: SplitRule) -> list[str]:
    splitter = WordSplitter(rule)
    found = splitter.split([text])
    return [found.new[number - 1] for number in found.numbers]


def test_words_are_numbered_by_falling_count_and_then_by_code_point(tmp_path: Path) -> None:
    stream = build_words([written(tmp_path)], tmp_path / "words", reading=SENTENCES)
    assert stream.words == ("<unk>", "a", "b", "c", "d")
    assert stream.counts.tolist() == [1, 4, 2, 1, 1]
    assert stream.ids.tolist() == [1, 2, 1, 3, 1, 2, 0, 4, 1]
    assert stream.ids.dtype == np.int32
    assert stream.starts.tolist() == [0, 3, 6, 9]
    assert stream.documents.tolist() == [0, 2, 3]
    assert stream.line(1).tolist() == [3, 1, 2]
    assert (stream.lines, stream.vocab_size) == (3, 5)
    assert isinstance(stream.ids, np.memmap)


def test_a_text_cannot_forge_reserved_words(tmp_path: Path) -> None:
    path = written(tmp_path, "<s> a </s> <unk> a\n")
    stream = build_words([path], tmp_path / "words", reading=SENTENCES)
    assert stream.words == ("<unk>", "a")
    assert stream.ids.tolist() == [0, 1, 0, 0, 1]
    assert stream.encode(["<s>", "</s>", "<unk>", "a", "new"]).tolist() == [0, 0, 0, 1, 0]
    assert any("</s> stands 1 times" in line for line in stream.account_lines())


def test_rare_words_become_unknown_and_are_accounted_for(tmp_path: Path) -> None:
    stream = build_words([written(tmp_path)], tmp_path / "words", reading=SENTENCES, min_count=2)
    assert stream.words == ("<unk>", "a", "b")
    assert stream.counts.tolist() == [3, 4, 2]
    assert stream.account["left_out"] == {"c": 1, "d": 1}
    assert any("2 words rarer than 2" in line for line in stream.account_lines())
    most = build_words([written(tmp_path)], tmp_path / "most", reading=SENTENCES, most=1)
    assert most.words == ("<unk>", "a")


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        (SplitRule(), "Don't stop, it's 3.5!", ["Don't", "stop", ",", "it's", "3", ".", "5", "!"]),
        (SplitRule(split="letters"), "Don't stop, ok!", ["Don't", "stop", "ok"]),
        (SplitRule(split="spaces"), "Don't stop, ok!", ["Don't", "stop,", "ok!"]),
        (SplitRule(lower=True), "ÄB Cd", ["äb", "cd"]),
        (SplitRule(), "我爱BERT模型", ["我", "爱", "BERT", "模", "型"]),
        (SplitRule(), "cafe\u0301 na_me", ["cafe\u0301", "na", "_", "me"]),
        (SplitRule(split="spaces"), "a\u00a0b\tc", ["a\u00a0b", "c"]),
    ],
)
def test_text_is_split_as_the_rule_says(rule: SplitRule, text: str, words: list[str]) -> None:
    assert split(text, rule) == words


def test_chinese_words_are_those_of_the_segmenter() -> None:
    pytest.importorskip("rjieba")
    text = "我们喜欢吃苹果，apple很好"
    found = split(text, SplitRule(segmenter="jieba"))
    spans = segmenter("jieba").words("我们喜欢吃苹果")
    assert found[: len(spans)] == ["我们喜欢吃苹果"[a:b] for a, b in spans]
    assert found[len(spans) :] == ["，", "apple", "很", "好"]


def test_a_folder_is_made_once_and_a_changed_setting_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    first = build_words([path], tmp_path / "words", reading=SENTENCES)
    again = build_words([path], tmp_path / "words", reading=SENTENCES)
    assert again.words == first.words
    with pytest.raises(WriteError, match="other files or settings"):
        build_words([path], tmp_path / "words", reading=SENTENCES, lower=True)


def test_a_packed_file_gives_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    packed = build_words([tmp_path / "text.txt.gz"], tmp_path / "packed", reading=SENTENCES)
    plain = build_words([written(tmp_path)], tmp_path / "plain", reading=SENTENCES)
    assert packed.ids.tolist() == plain.ids.tolist()
    assert packed.words == plain.words


def test_an_interrupted_build_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"w{i % 7} w{i % 11} w{i % 31}" + ("\n" if i % 5 == 0 else "") for i in range(400)]
    path = written(tmp_path, "\n".join(lines) + "\n")
    monkeypatch.setattr(resumable_file, "SECONDS_BETWEEN_SAVES", 0.0)
    # a stream cuts blocks at chunks of its reader, so the text comes as several files
    others = [written(tmp_path, f"x{i} y w{i}\nw1 x{i}\n", f"other{i}.txt") for i in range(5)]
    files = [path, *others]
    whole = build_words(files, tmp_path / "whole", reading=SENTENCES)

    def interrupt(words: int, share: float) -> None:
        if share > 0.99:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_words(files, tmp_path / "cut", reading=SENTENCES, progress=interrupt)
    heard: list[int] = []
    build_words(
        files, tmp_path / "cut", reading=SENTENCES, progress=lambda n, share: heard.append(n)
    )
    assert len(heard) <= 3  # of 6: the blocks before were not split again
    for name in ("ids.bin", "lines.bin", "documents.bin", "words.txt", "counts.bin"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert whole.lines == 410
    assert not list(tmp_path.glob(".*"))


def test_a_part_has_its_own_lines_and_counts(tmp_path: Path) -> None:
    stream = build_words([written(tmp_path)], tmp_path / "words", reading=SENTENCES)
    last = stream.part(1, 2)
    assert (last.lines, last.ids.tolist(), last.starts.tolist()) == (1, [0, 4, 1], [0, 3])
    assert last.counts.tolist() == [1, 1, 0, 0, 1]
    with pytest.raises(ConfigError, match="no part"):
        stream.part(1, 3)


@pytest.mark.parametrize(
    ("text", "message"), [("\n\n \n", "no word in text.txt"), ("!!\n?!\n", "no word in text.txt")]
)
def test_a_text_without_words_is_refused(tmp_path: Path, text: str, message: str) -> None:
    reading = WordReading(split="letters", form="sentences")
    with pytest.raises(InputFileError, match=message):
        build_words([written(tmp_path, text)], tmp_path / "words", reading=reading)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_bad_settings_and_places_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(ConfigError, match="min_count is 0"):
        build_words([path], tmp_path / "words", min_count=0)
    with pytest.raises(InputFileError, match="no file"):
        build_words([tmp_path / "none.txt"], tmp_path / "words")
    (tmp_path / "taken").mkdir()
    with pytest.raises(WriteError, match="no folder of words"):
        build_words([path], tmp_path / "taken")


@pytest.mark.parametrize("name", ["ids.bin", "lines.bin", "words.json", "words.txt", "counts.bin"])
def test_a_damaged_folder_is_refused(tmp_path: Path, name: str) -> None:
    build_words([written(tmp_path)], tmp_path / "words", reading=SENTENCES)
    file = tmp_path / "words" / name
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises((FolderError, BertsmithError), match=r"words"):
        WordStream.open(tmp_path / "words")
