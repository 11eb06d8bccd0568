"""Small English and Chinese tokenizers, rows of texts, and every masking scheme of the tables."""

from __future__ import annotations

import ast
import random
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from bertsmith.corpus.rows import RowsBatch, rows_of
from bertsmith.objectives.masking.grouping import GROUPINGS, Grouping
from bertsmith.objectives.masking.replacement import REPLACEMENTS, Replacement
from bertsmith.random_keys import hashes
from bertsmith.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
STEMS = [
    "play",
    "like",
    "cat",
    "mat",
    "sing",
    "word",
    "piece",
    "north",
    "south",
    "new",
    "york",
    "a",
]
ENDS = ["", "##s", "##ed", "##ing", "##er", "##able"]
CHINESE = "我爱北京天安门大学生活很美好今天气不错中国人民银行上海交通"
# What a segmenter would say, longest first: two words of four, some of two characters.
CHINESE_WORDS = [
    "人民银行",
    "交通大学",
    "北京",
    "天安门",
    "大学",
    "生活",
    "今天",
    "天气",
    "中国",
    "上海",
]
ENTITIES = {
    "english": ["new york", "north south", "cats", "new york piece", "[SEP]"],
    "chinese": ["北京大学", "中国人民银行", "天安门", "上海交通大学"],
}
SYNONYMS = {
    "english": ["cat\tmat\tword", "north south", "play like sing", "cats mats words", "cat cats"],
    "chinese": ["Aa01A01= 北京 上海 中国", "大学\t生活", "我 爱"],
}
LANGUAGES = ("english", "chinese")


class WordList:
    """A segmenter that knows a few words."""

    def words(self, text: str) -> list[tuple[int, int]]:
        spans, at = [], 0
        while at < len(text):
            size = next((len(w) for w in CHINESE_WORDS if text.startswith(w, at)), 1)
            spans.append((at, at + size))
            at += size
        return spans


@cache
def tokenizer(language: str = "english") -> Tokenizer:
    tokens = [*SPECIALS, *STEMS, *(end for end in ENDS if end), *dict.fromkeys(CHINESE), "."]
    tokens += [f"[unused{i}]" for i in range(5)]
    tokens += [chr(c) for c in range(0x4E10, 0x4E80) if chr(c) not in tokens]
    vocab = "".join(f"{token}\n" for token in tokens)
    files = {"vocab.txt": vocab.encode(), "tokenizer_config.json": b'{"do_lower_case": true}'}
    made = Tokenizer.from_files(files)
    return made.with_segmenter(WordList()) if language == "chinese" else made


def texts(language: str, count: int, size: tuple[int, int] = (60, 120), seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        words = rng.randint(*size)
        if language == "english":
            found.append(
                " ".join(
                    rng.choice(STEMS) + rng.choice(ENDS).removeprefix("##") for _ in range(words)
                )
            )
        else:
            found.append("".join(rng.choice([*CHINESE_WORDS, *CHINESE]) for _ in range(words)))
    return found


@cache
def rows(
    language: str, count: int = 50, *, seed: int = 0, size: tuple[int, int] = (60, 120)
) -> RowsBatch:
    return rows_of(tokenizer(language).encode_batch(texts(language, count, size)), seed=seed)


def picked(batch: RowsBatch, numbers: list[int]) -> RowsBatch:
    """Some texts of a batch, with their keys, in another order."""
    parts = [slice(batch.starts[n], batch.starts[n] + batch.lengths[n]) for n in numbers]
    offset = 1000 * np.repeat(np.arange(len(numbers)), [batch.lengths[n] for n in numbers])
    words = np.concatenate([batch.words[p] - max(batch.words[p].max(), 0) for p in parts])
    real = np.concatenate([batch.words[p] >= 0 for p in parts])
    return RowsBatch(
        ids=np.concatenate([batch.ids[p] for p in parts]),
        segments=np.concatenate([batch.segments[p] for p in parts]),
        words=np.where(real, words + 100_000 + offset, -1).astype(np.int32),
        lengths=tuple(batch.lengths[n] for n in numbers),
        keys=batch.keys[numbers],
    )


def plain_rows(words: list[list[int]], seed: int = 0) -> RowsBatch:
    """Rows straight from word numbers, -1 for special tokens."""
    flat = np.array([w for text in words for w in text], dtype=np.int32)
    return RowsBatch(
        ids=np.arange(5, 5 + len(flat), dtype=np.int32),
        segments=np.zeros(len(flat), dtype=np.int32),
        words=flat,
        lengths=tuple(len(text) for text in words),
        keys=hashes(seed, np.arange(len(words))),
    )


def grouping(kind: str, language: str, folder: Path) -> Grouping:
    settings = {"kind": kind}
    if kind in ("phrase", "entity"):
        file = folder / f"{language}.txt"
        file.write_text("\n".join(ENTITIES[language]), encoding="utf-8")
        settings["file"] = str(file)
    return GROUPINGS[kind].model_validate(settings).make(tokenizer(language))


def replacement(kind: str, language: str, folder: Path, **more: object) -> Replacement:
    settings: dict[str, object] = {"kind": kind, **more}
    if kind == "similar":
        file = folder / f"{language}-synonyms.txt"
        file.write_text("\n".join(SYNONYMS[language]), encoding="utf-8")
        settings["synonyms"] = str(file)
    return REPLACEMENTS[kind].model_validate(settings).make(tokenizer(language))


def declared_kinds(module: ModuleType) -> set[str]:
    """The `kind` of every settings class in the source of a module."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    return {
        node.annotation.slice.value
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Subscript)
        if getattr(node.target, "id", "") == "kind"
    }
