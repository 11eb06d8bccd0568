"""What all models of a road are trained and tested on: one split, one tokenizer, two streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.stream.splitting import WordSplitter
from bertsmith.classic.stream.stream import WordReading, build_words
from bertsmith.classic.stream.texts import KnownWordEncoder, encode_files, stream_of
from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.lines import text_lines
from bertsmith.files.strict_json import write_json
from bertsmith.studies.road.documents import (
    COUNTS,
    HELD_OUT,
    TRAIN,
    VALIDATION,
    SplitCounts,
    split_documents,
)
from bertsmith.studies.road.request import RoadRequest
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

REQUEST, TEXT, TOKENIZER, PIECES, WORDS, SHARDS = (
    "request.json",
    "text",
    "tokenizer",
    "pieces",
    "words",
    "shards",
)
SENTENCES = WordReading(form="sentences")
MOST_WORDS = 20_000  # of the stream of words, for ELMo and word2vec

Ids = NDArray[np.int32]
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    """The held-out lines that perplexities are taken over, in both units."""

    pieces: list[Ids]
    words: list[Ids]  # of the stream of words, 0 unknown
    spelled: list[tuple[str, ...]]  # the words as they are
    texts: list[str]
    characters: int

    @property
    def word_count(self) -> int:
        """All words."""
        return sum(map(len, self.spelled))


@dataclass(frozen=True, eq=False, kw_only=True)
class RoadMaterial:
    """Everything that models of a road share."""

    request: RoadRequest
    counts: SplitCounts
    tokenizer: Tokenizer
    pieces: WordStream
    words: WordStream

    @property
    def folder(self) -> Path:
        """Where the road is."""
        return self.request.out

    @property
    def shards(self) -> Path:
        """The training documents as BERT reads them."""
        return self.folder / SHARDS

    @property
    def train_file(self) -> Path:
        """The training documents, one sentence per line."""
        return self.folder / TEXT / TRAIN

    def validation(self, stream: WordStream) -> WordStream:
        """The documents that training is stopped by, in the words of a stream."""
        text = encode_files([self.folder / TEXT / VALIDATION], stream.words, stream.rule, SENTENCES)
        return stream_of(text, stream.words, stream.rule)

    def held_out(self) -> Iterator[tuple[str, ...]]:
        """The words of each held-out sentence."""
        splitter = WordSplitter(self.words.rule)
        for lines in _groups(self.folder / TEXT / HELD_OUT):
            yield from split_words(splitter, lines)

    def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of texts, as those of the stream of words."""
        flat = [text.replace("\n", " ").replace("\x00", " ") for text in texts]
        lower = [text.lower() for text in flat] if self.request.lower else flat
        return split_words(WordSplitter(self.words.rule), lower)

    @cached_property
    def scored(self) -> ScoredText:
        """The first held-out lines."""
        splitter = WordSplitter(self.words.rule)
        texts: list[str] = []
        spelled: list[tuple[str, ...]] = []
        count = 0
        for lines in _groups(self.folder / TEXT / HELD_OUT):
            for text, words in zip(lines, split_words(splitter, lines), strict=True):
                if words and count < self.request.sizes.scored_words:
                    texts.append(text)
                    spelled.append(words)
                    count += len(words)
            if count >= self.request.sizes.scored_words:
                break
        return ScoredText(
            pieces=KnownWordEncoder(self.pieces.words, self.pieces.rule).encode(texts),
            words=[self.words.encode(words) for words in spelled],
            spelled=spelled,
            texts=texts,
            characters=sum(map(len, texts)),
        )


def _groups(path: Path, size: int = 2_000) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text_lines(path):
        if line.strip():
            lines.append(line)
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines


def split_words(splitter: WordSplitter, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of lines that hold no line break."""
    found = splitter.split(lines)
    names = splitter.names(found.numbers)
    ends = np.cumsum(found.lengths).tolist()
    starts = [0, *ends[:-1]]
    return [tuple(names[a:b]) for a, b in zip(starts, ends, strict=True)]


def check_request(request: RoadRequest) -> None:
    """Refuse a folder that holds the road of another request."""
    record = request.record()
    path = request.out / REQUEST
    if path.exists():
        stored = json.loads(path.read_bytes())
        for name, value in record.items():
            if stored.get(name) != json.loads(json.dumps(value)):
                raise ConfigError(
                    f"{request.out} holds a road whose {name} was {stored.get(name)!r} and is now "
                    f"{value!r}; give another folder, or the same options to resume"
                )
        return
    make_folder(request.out)
    write_json(path, record)


def prepare_material(request: RoadRequest, notice: Notice) -> RoadMaterial:
    """Split the documents, learn the tokenizer and make both streams; the same call resumes."""
    check_request(request)
    place, out = request.out / TEXT, request.out
    if (place / COUNTS).exists():
        counts = SplitCounts(**json.loads((place / COUNTS).read_bytes()))
    else:
        notice("documents are read and split")
        counts = split_documents(request, place)
    train = [place / TRAIN]
    if not (out / TOKENIZER).exists():
        notice("a tokenizer is learned from the training documents")
        learned = learn_vocabulary(
            (line for line in text_lines(train[0]) if line.strip()),
            size=request.vocab_size,
            lowercase=request.lower,
        )
        make_folder(out / TOKENIZER)
        learned.save(out / TOKENIZER)
    tokenizer = Tokenizer.from_folder(out / TOKENIZER)
    notice("the training documents become pieces, words and shards")
    pieces = build_words(train, out / PIECES, tokenizer=tokenizer, reading=SENTENCES)
    reading = WordReading(form="sentences", segmenter=request.reading.segmenter)
    words = build_words(train, out / WORDS, most=MOST_WORDS, reading=reading)
    build_corpus(
        train,
        tokenizer,
        out / SHARDS,
        CorpusSettings(form="sentences", segmenter="character"),
        workers=torch.get_num_threads(),
        notice=lambda line: None,
    )
    return RoadMaterial(
        request=request, counts=counts, tokenizer=tokenizer, pieces=pieces, words=words
    )
