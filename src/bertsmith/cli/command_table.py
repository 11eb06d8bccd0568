"""The commands, one line each, under headings in the order of a user's work; none is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HOME = "bertsmith.cli.commands"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives and what it does in one line."""

    home: str
    summary: str
    variables: str | None = None  # every option --NAME is also the variable of this prefix and NAME


USE = {
    "embed": Entry(f"{HOME}.embed:embed", "Encode a file of texts as a matrix of vectors."),
    "predict": Entry(
        f"{HOME}.predict:predict", "Predict a text or a file with a fine-tuned model."
    ),
    "generate": Entry(
        f"{HOME}.generation.generate:generate",
        "Write text: continue a prompt, or answer a source.",
    ),
    "fill": Entry(f"{HOME}.fill:fill", "Fill the [MASK] tokens of a text."),
    "correct": Entry(f"{HOME}.correct:correct", "Correct spelling mistakes in Chinese text."),
    "search": Entry(f"{HOME}.search.search:search", "Search an index by meaning and by words."),
    "serve": Entry(
        f"{HOME}.service.serve:serve",
        "Serve models over HTTP, with a page to try them; serve bench: load.",
        variables="BERTSMITH_SERVE",
    ),
}
TRAIN = {
    "finetune": Entry(f"{HOME}.finetune:finetune", "Fine-tune a model on your own labeled rows."),
    "sentences": Entry(
        f"{HOME}.sentences.app:app",
        "Sentence vectors: train, improve, evaluate; similar sentences.",
    ),
    "pretrain": Entry(f"{HOME}.pretrain:pretrain", "Pre-train a model on a corpus."),
    "lm": Entry(
        f"{HOME}.lm.app:app",
        "Language models from n-gram to GPT: train, perplexity; score texts.",
    ),
    "words": Entry(
        f"{HOME}.words.app:app", "Word vectors: train word2vec, look up, evaluate, convert."
    ),
}
DATA = {
    "corpus": Entry(f"{HOME}.corpus:app", "Build a pre-training corpus from files of text."),
    "vocab": Entry(f"{HOME}.vocab:app", "Learn a vocabulary from your own files."),
    "tokenize": Entry(f"{HOME}.tokenize:tokenize", "Show the tokens, ids and offsets of a text."),
    "mask": Entry(f"{HOME}.mask:app", "Preview a masking scheme on your own text."),
    "index": Entry(
        f"{HOME}.search.index:app", "Build an index of texts for search; find similar pairs."
    ),
}
COMPARE = {
    "evaluate": Entry(f"{HOME}.evaluate:evaluate", "Evaluate a fine-tuned model on labeled rows."),
    "compare": Entry(
        f"{HOME}.compare:compare", "Test whether one fine-tuned model is better than another."
    ),
    "lengths": Entry(f"{HOME}.lengths:lengths", "Show text lengths; compare ways of truncation."),
    "compare-vectors": Entry(
        f"{HOME}.compare_vectors:compare_vectors", "Compare poolings and layers on labeled rows."
    ),
    "glue": Entry(f"{HOME}.studies.glue:glue", "Fine-tune on every data set of GLUE and CLUE."),
    "ablate": Entry(
        f"{HOME}.studies.ablate:ablate",
        "Measure what settings of a pre-training recipe are worth.",
    ),
    "road": Entry(
        f"{HOME}.studies.road:road", "Compare models from n-gram to BERT on the same documents."
    ),
}
TOOLS = {
    "info": Entry(f"{HOME}.info:info", "Describe a model folder."),
    "convert": Entry(
        f"{HOME}.convert:convert", "Convert a model folder of any age to safetensors."
    ),
    "recipes": Entry(f"{HOME}.recipes:recipes", "List and print the shipped recipes."),
    "map": Entry(f"{HOME}.search.map:map_command", "Show texts or words as a map on a page."),
    "doctor": Entry(f"{HOME}.doctor:doctor", "Test which fast paths work on this machine."),
    "demo": Entry(
        f"{HOME}.demo:demo", "Search, map, fine-tune and pre-train on Python's documentation."
    ),
}
HEADINGS = {"Use": USE, "Train": TRAIN, "Data": DATA, "Compare": COMPARE, "Tools": TOOLS}
# Two words; `serve` alone takes models, so it cannot be a group.
SECOND = {
    "serve bench": Entry(f"{HOME}.service.bench:bench", "Measure a running service under load.")
}
COMMANDS = {**USE, **TRAIN, **DATA, **COMPARE, **TOOLS, **SECOND}


def command_of(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command that the first words name, and the arguments behind it."""
    two = " ".join(arguments[:2])
    words = 2 if two in SECOND else 1
    return " ".join(arguments[:words]), list(arguments[words:])


def command_lines() -> list[str]:
    """The commands under their headings, a line each."""
    width = max(len(name) for under in HEADINGS.values() for name in under) + 2
    lines: list[str] = []
    for heading, under in HEADINGS.items():
        lines += ["", f"{heading}:"]
        lines += [f"  {name:<{width}}{entry.summary}" for name, entry in under.items()]
    return lines[1:]
