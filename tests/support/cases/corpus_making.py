"""Small tokenizers, texts and corpora for the tests of corpora."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.report import CorpusReport
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [chr(code) for code in range(33, 127)]
WORDS = ["the", "cat", "sat", "on", "mat", "play", "##ing", "##s", "un", "##able", "é"]
IDEOGRAPHS = list("我爱北京天安门世界你好吗他来了今天。，！？")
NOUNS = ["cat", "mat", "play", "plays", "playing", "unable", "zebra", "Mr. Fox", "the", "I"]


def bert(*, lowercase: bool = True, **config: bool) -> Tokenizer:
    tokens = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS, *IDEOGRAPHS]
    files = {
        "vocab.txt": "".join(f"{token}\n" for token in dict.fromkeys(tokens)).encode(),
        "tokenizer_config.json": json.dumps({"do_lower_case": lowercase, **config}).encode(),
    }
    return Tokenizer.from_files(files)


def some_documents(count: int, seed: int = 1) -> list[list[str]]:
    """Documents of sentences, English with some Chinese."""
    rng = random.Random(seed)
    return [
        [
            " ".join(rng.choice(NOUNS) for _ in range(rng.randint(2, 9)))
            + rng.choice([".", " 我爱北京。", "!"])
            for _ in range(rng.randint(1, 6))
        ]
        for _ in range(count)
    ]


def as_sentences(documents: list[list[str]]) -> str:
    """BERT's format: one sentence a line, blank lines between documents."""
    return "\n\n".join("\n".join(document) for document in documents) + "\n"


def make(
    path: Path, out: Path, tokenizer: Tokenizer | None = None, workers: int = 1, **settings: object
) -> tuple[Corpus, CorpusReport]:
    report = build_corpus(
        [path],
        tokenizer or bert(),
        out,
        CorpusSettings(**{"segmenter": "character", **settings}),
        workers=workers,
    )
    return open_corpus(out), report


def texts_of(corpus: Corpus) -> list[list[str]]:
    """Every document as decoded sentences."""
    tokenizer = corpus.tokenizer()
    borders = corpus.sentences
    return [
        [
            tokenizer.decode(corpus.tokens[borders[number] : borders[number + 1]])
            for number in range(corpus.documents[document], corpus.documents[document + 1])
        ]
        for document in range(len(corpus.documents) - 1)
    ]


def fingerprint(folder: Path) -> dict[str, str]:
    """The hash of every file below a folder, by its name."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
