"""Language models of words: train any kind, score text, generate, convert; for CLI and Python."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertsmith.classic.generation import generate_lines
from bertsmith.classic.kinds import lm_kind, open_lm
from bertsmith.classic.language_model import LanguageModel, LmScore, score_lines
from bertsmith.classic.neural.mixture import Mixture, check_same_words, fitted_mixture
from bertsmith.classic.ngram.arpa import read_arpa, write_arpa
from bertsmith.classic.ngram.folder import open_ngram, write_ngram
from bertsmith.classic.stream.splitting import UNKNOWN, SplitRule
from bertsmith.classic.stream.stream import WordReading, WordStream, build_words, words_key
from bertsmith.classic.stream.texts import EncodedText, KnownWordEncoder, encode_files, stream_of
from bertsmith.config import Settings, overridden, overrides_of, validated
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.errors import ConfigError, WriteError, check_type
from bertsmith.files.atomic_folder import check_target
from bertsmith.files.growing_folder import discard
from bertsmith.files.paths import GivenPath, GivenPaths, path_of, paths_of
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.loop.progress import Watcher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LmRequest:
    """What to train a language model on, and how.

    `words` is the folder that keeps the words of the text for other models; without it they are
    removed when the model is trained. `settings` are those of the kind: an object of its class, or
    some of them by name, {"plan.epochs": 2.0}.
    """

    files: GivenPaths
    kind: str
    out: GivenPath
    settings: Settings | Mapping[str, Any] = field(default_factory=dict)
    held_out: GivenPaths = ()
    reading: WordReading = field(default_factory=WordReading)
    min_count: int = 1
    most: int | None = None
    lower: bool = False
    tokenizer: Tokenizer | None = None
    words: GivenPath | None = None


def train_language_model(
    request: LmRequest,
    *,
    progress: Callable[[int, float], None] = lambda words, share: None,
    heard: Callable[[WordStream], None] = lambda stream: None,
    watch: Watcher | None = None,
) -> LmScore | None:
    """Train a model of any kind and write its folder; the score of the held-out files, if any.

    The same call resumes. `progress` hears words and the share of the text while it is read,
    `heard` the stream of words.
    """
    check_type("request", request, LmRequest)
    kind = lm_kind(request.kind)
    settings = _settings(request.kind, kind.settings, request.settings)
    out = path_of("out", request.out).absolute()
    place = out.parent / f".{out.name}.words"
    if request.words is not None:
        place = path_of("words", request.words)
    files, how = paths_of("files", request.files), _words_of(request)
    text: EncodedText | None = None
    if kind.finished is not None and kind.finished(out, words_key(files, **how), settings):
        log.warning("%s is there already, of the same text and settings", out)
        if held := paths_of("held_out", request.held_out):
            words, rule = kind.open(out).words, SplitRule.open(out)
            text = encode_files(held, words, rule, request.reading)
    else:
        stream = build_words(files, place, progress=progress, **how)
        heard(stream)
        held_out = None
        if held := paths_of("held_out", request.held_out):
            text = encode_files(held, stream.words, stream.rule, request.reading)
            held_out = stream_of(text, stream.words, stream.rule)
        kind.train(stream, settings, out, held_out=held_out, watch=watch)
        if not (out / "config.json").is_file():  # stopped before its end
            return None
    found = None
    if text is not None:
        found = score_lines(kind.open(out), text.lines, characters=text.characters)
    if request.words is None:
        discard(place)
    return found


def _words_of(request: LmRequest) -> dict[str, Any]:
    """How text becomes words."""
    names = ("min_count", "most", "lower", "tokenizer", "reading")
    return {name: getattr(request, name) for name in names}


def _settings(name: str, kind: type[Settings], given: Settings | Mapping[str, Any]) -> Settings:
    """The settings of a kind of model, checked."""
    if isinstance(given, Settings):
        check_type(f"settings of {name}", given, kind)
        return given
    check_type("settings", given, Mapping)
    tree = overridden({}, overrides_of(given))
    return validated(kind, tree, f"settings of {name}")


def score_language_model(
    model: GivenPath,
    files: GivenPaths,
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
) -> LmScore:
    """Perplexity and bits per character of files under a model."""
    opened = open_lm(model)
    text = encode_files(
        paths_of("files", files), opened.words, SplitRule.open(Path(model)), settings
    )
    return score_lines(opened, text.lines, characters=text.characters)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureScore:
    """The score of a mixture, and what each of its models reaches alone.

    `name` says that it is a mixture, and of what; `fitted` whether its weights were found on
    validation text, else they are equal.
    """

    name: str
    weights: tuple[float, ...]
    fitted: bool
    score: LmScore
    alone: tuple[tuple[str, LmScore], ...]

    def as_dict(self) -> dict[str, Any]:
        """All figures for JSON."""
        return {
            "model": self.name,
            "weights": list(self.weights),
            "fitted": self.fitted,
            **self.score.as_dict(),
            "alone": [{"model": name, **score.as_dict()} for name, score in self.alone],
        }


def score_mixture(
    models: GivenPaths,
    files: GivenPaths,
    *,
    validation: GivenPaths = (),
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
) -> MixtureScore:
    """The score of files under a weighted sum of models that were trained on the same words.

    The weights are those that fit `validation` best, found by EM; without it they are equal. They
    are never found on the files that are scored.
    """
    folders, scored = paths_of("models", models), paths_of("files", files)
    fitting = paths_of("validation", validation)
    if same := {file.resolve() for file in scored} & {file.resolve() for file in fitting}:
        raise ConfigError(
            f"{min(same)} is both scored and validation text; find the weights on another file"
        )
    opened = [open_lm(model) for model in folders]
    check_same_words(opened)
    rules = [SplitRule.open(folder) for folder in folders]
    for folder, rule in zip(folders[1:], rules[1:], strict=True):
        if rule.describe() != rules[0].describe():
            raise ConfigError(
                f"{folders[0]} and {folder} split text differently, so they cannot be mixed; train "
                "both with the same options"
            )
    words = opened[0].words
    if fitting:
        known = encode_files(fitting, words, rules[0], settings)
        mixture = fitted_mixture(opened, known.lines)
    else:
        mixture = Mixture(models=tuple(opened), weights=(1 / len(opened),) * len(opened))
    text = encode_files(scored, words, rules[0], settings)

    def score(model: LanguageModel) -> LmScore:
        return score_lines(model, text.lines, characters=text.characters)

    return MixtureScore(
        name=mixture.kind,
        weights=mixture.weights,
        fitted=bool(fitting),
        score=score(mixture),
        alone=tuple((model.kind, score(model)) for model in opened),
    )


def generate_with_language_model(
    model: GivenPath,
    prompts: Sequence[str],
    *,
    most: int = 50,
    temperature: float = 1.0,
    top: int | None = None,
    seed: int = 0,
) -> list[str]:
    """What follows each prompt; words are joined by spaces, pieces by their tokenizer."""
    opened = open_lm(model)
    rule = SplitRule.open(Path(model))
    check_type("prompts", prompts, Sequence)
    lines = [line.replace("\n", " ") for line in prompts]
    generated = generate_lines(
        opened,
        KnownWordEncoder(opened.words, rule).encode(lines),
        most=most,
        temperature=temperature,
        top=top,
        generator=torch.Generator().manual_seed(seed),
    )
    return [_joined([opened.words[n] for n in line.tolist()], rule) for line in generated]


def _joined(words: Sequence[str], rule: SplitRule) -> str:
    if rule.tokenizer is None:
        return " ".join(words)
    numbers = [rule.tokenizer.token_to_id(word) for word in words if word != UNKNOWN]
    return rule.tokenizer.decode(np.array([n for n in numbers if n is not None], dtype=np.int32))


def convert_ngram(source: Path, target: Path) -> str:
    """ARPA file to folder, or folder to ARPA file; says in a few words what was written."""
    if source.is_dir():
        model = open_ngram(source)
        if target.is_dir():
            raise WriteError(f"{target} is a folder; give the name of an ARPA file")
        write_arpa(model, target)
        return f"{target}: ARPA, order {model.order}, {_sizes(model.orders)}"
    check_target(target.absolute(), overwrite=False)  # before the work, not after it
    words, orders = read_arpa(source)
    write_ngram(words, orders, target, rule=SplitRule(split="spaces"))
    return f"{target}: n-gram model of order {len(orders)}, {_sizes(orders)}"


def _sizes(orders: Sequence[object]) -> str:
    counts = [len(getattr(order, "keys")) for order in orders]  # noqa: B009
    return " + ".join(f"{count:,}" for count in counts) + " n-grams"
