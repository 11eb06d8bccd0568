"""How text is written: options of a call, and the plan that they make with a folder's defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertsmith.errors import ConfigError
from bertsmith.folders.generation import (
    FACTORS,
    LEAST_FACTOR,
    MOST_FACTOR,
    By,
    GenerationDefaults,
    Stop,
)
from bertsmith.setting import (
    BEAMS,
    MODEL,
    OUTPUT,
    SAMPLING,
    WRITING,
    Setting,
    check_settings,
    named_setting,
)

if TYPE_CHECKING:
    from bertsmith.text.tokenizer import Tokenizer

MAX_NEW = 64  # new tokens where neither a call nor a folder says how many
TOP_K = 50  # the same of transformers
MOST_BEAMS = 1_000
Stopped = Literal["end", "length", "positions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Options of one call; None is the folder's own value, and a plain default where it has none.

    Without `beams` and `sample` each token is the likeliest one (greedy).
    """

    max_new: Annotated[
        int | None,
        Setting("Maximum number of new tokens; the folder's own, or 64, if unset.", WRITING, min=1),
    ] = None
    min_new: Annotated[int | None, Setting("Fewest new tokens.", WRITING, min=0, rare=True)] = None
    no_repeat: Annotated[
        int | None, Setting("No N tokens in a row occur twice.", WRITING, metavar="N", min=0)
    ] = None
    repetition_penalty: Annotated[
        float | None, Setting("Above 1: tokens that were written get less likely.", WRITING)
    ] = None
    forbid: Annotated[
        Sequence[str],
        Setting("Word that must not be written; repeatable.", WRITING, metavar="WORD", rare=True),
    ] = ()
    first: Annotated[
        str | None,
        Setting("Token that every answer begins with.", WRITING, metavar="TOKEN", rare=True),
    ] = None
    last: Annotated[
        str | None,
        Setting(
            "Token at the last place, if --max-new is reached.", WRITING, metavar="TOKEN", rare=True
        ),
    ] = None
    by: Annotated[
        By | None,
        Setting(
            "How a masked LM of other software was trained to write: mask (UniLM) or shift "
            "(SimBERT). Own folders say so.",
            MODEL,
            rare=True,
        ),
    ] = None
    beams: Annotated[
        int | None, Setting("Candidates per text; 1: greedy.", BEAMS, min=1, max=MOST_BEAMS)
    ] = None
    length_penalty: Annotated[
        float | None,
        Setting("Above 0 favors long answers, below 0 short ones; 1 if unset.", BEAMS),
    ] = None
    stop: Annotated[
        Stop | None,
        Setting(
            "early: with as many answers as beams; likely: when the best candidate is no better "
            "than the worst answer; never: when it cannot become better at any length.",
            BEAMS,
            rare=True,
        ),
    ] = None
    sample: Annotated[bool | None, Setting("Draw tokens by their probability.", SAMPLING)] = None
    temperature: Annotated[
        float | None,
        Setting(
            "Temperature of the softmax: below 1, likely tokens become likelier; 1 if unset.",
            SAMPLING,
        ),
    ] = None
    top_k: Annotated[
        int | None, Setting("Draw among the K likeliest; 50 if unset, 0: all.", SAMPLING, min=0)
    ] = None
    top_p: Annotated[
        float | None,
        Setting("Among the likeliest tokens with this probability in all.", SAMPLING),
    ] = None
    seed: Annotated[
        int | None,
        Setting(
            "Random seed; 0 if unset. No batch changes the text that it draws.", SAMPLING, min=0
        ),
    ] = None
    answers: Annotated[
        int | None,
        Setting(
            "Answers per text, best first; needs --beams or --sample.",
            OUTPUT,
            min=1,
            max=MOST_BEAMS,
        ),
    ] = None


GREEDY = GenerationOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A text that was written, with its token ids and why it stopped.

    `score` is the sum of the log-probabilities of the tokens, divided by their number; with beams
    by their number to the power of the length penalty, and of the probabilities after penalties.
    `stopped` is "end" (the model ended the text), "length" (as many new tokens as allowed) or
    "positions" (the model has no positions for more).
    """

    text: str
    ids: tuple[int, ...]
    score: float
    stopped: Stopped

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "text": self.text,
            "score": self.score,
            "stopped": self.stopped,
            "tokens": len(self.ids),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """All answers for one text, the best first."""

    answers: tuple[Answer, ...]

    @property
    def text(self) -> str:
        """The best answer."""
        return self.answers[0].text

    @property
    def stopped(self) -> Stopped:
        """Why the best answer stopped."""
        return self.answers[0].stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingPlan:
    """Options with everything decided: tokens are ids, and nothing is None that must be known.

    `max_length` and `min_length` count what stands before the first new token, too.
    """

    max_new: int | None = MAX_NEW
    max_length: int | None = None
    min_new: int = 0
    min_length: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    stop: Stop = "likely"
    sample: bool = False
    temperature: float = 1.0
    top_k: int = TOP_K
    top_p: float = 1.0
    seed: int = 0
    no_repeat: int = 0
    repetition_penalty: float = 1.0
    answers: int = 1
    first: int | None = None
    last: int | None = None
    ends: tuple[int, ...] = ()
    suppressed: tuple[int, ...] = ()
    first_suppressed: tuple[int, ...] = ()
    forbidden: tuple[tuple[int, ...], ...] = ()

    @property
    def rows(self) -> int:
        """Live rows per text: beams, or answers that are drawn."""
        return max(self.beams, self.answers)

    def limit(self, before: int) -> int:
        """The most new tokens after `before` others."""
        if self.max_new is not None:
            return self.max_new
        return MAX_NEW if self.max_length is None else self.max_length - before

    def least(self, before: int) -> int:
        """The fewest new tokens after `before` others."""
        return max(self.min_new, self.min_length - before)


# Settings that a call, a folder and a plan share.
_SHARED = (
    *("length_penalty", "stop", "temperature", "top_k", "top_p", "no_repeat"),
    *("repetition_penalty", "min_new"),
)
_SAMPLING = ("temperature", "top_k", "top_p", "seed")


def plan_of(
    options: GenerationOptions, defaults: GenerationDefaults, tokenizer: Tokenizer
) -> WritingPlan:
    """Everything decided, or an error that names the option."""
    _check_values(options)
    beams, sample = _search(options, defaults)
    values: dict[str, Any] = {}
    for name in _SHARED:
        for source in (options, defaults):
            if name not in values and getattr(source, name) is not None:
                values[name] = getattr(source, name)
    lengths = {"max_new": options.max_new}
    if options.max_new is None and (defaults.max_new or defaults.max_length):
        lengths = {"max_new": defaults.max_new, "max_length": defaults.max_length}
    values |= {name: value for name, value in lengths.items() if value is not None}
    if "max_new" not in values and "max_length" in values:
        values["max_new"] = None
    plan = WritingPlan(
        **values,
        min_length=0 if "min_new" in values else defaults.min_length or 0,
        beams=beams,
        sample=sample,
        seed=options.seed or 0,
        answers=_answers(options, defaults, beams, sample=sample),
        first=defaults.first
        if options.first is None
        else _token(options.first, "first", tokenizer),
        last=defaults.last if options.last is None else _token(options.last, "last", tokenizer),
        ends=defaults.ends,
        suppressed=defaults.suppressed,
        first_suppressed=defaults.first_suppressed,
        forbidden=(*defaults.forbidden, *_forbidden(options.forbid, tokenizer)),
    )
    if plan.max_new is not None and plan.min_new > plan.max_new:
        raise ConfigError(
            f"min_new (--min-new) is {plan.min_new} and max_new (--max-new) {plan.max_new}; the "
            "least must not be more than the most"
        )
    return plan


def _check_values(options: GenerationOptions) -> None:
    """Each option alone."""
    check_settings(options)
    if options.temperature is not None and not _is_factor(options.temperature):
        raise _refused(
            "temperature",
            options.temperature,
            f"give {FACTORS}; for the likeliest token at every step leave out --sample",
        )
    if options.top_p is not None and not 0 < options.top_p <= 1:
        raise _refused(
            "top_p",
            options.top_p,
            "give more than 0 and at most 1; for the likeliest token at every step leave out "
            "--sample",
        )
    if options.repetition_penalty is not None and not _is_factor(options.repetition_penalty):
        raise _refused(
            "repetition_penalty", options.repetition_penalty, f"give {FACTORS}; 1 is no penalty"
        )


def _is_factor(value: float) -> bool:
    """Whether logits can be divided by it."""
    return LEAST_FACTOR <= value <= MOST_FACTOR


def _search(options: GenerationOptions, defaults: GenerationDefaults) -> tuple[int, bool]:
    """The number of beams, and whether tokens are drawn; options that do not fit are refused."""
    beams, sample = options.beams, options.sample
    if beams is None:
        beams = 1 if sample else defaults.beams or 1
    if sample is None:
        sample = bool(defaults.sample) and options.beams in (None, 1)
    if sample and beams > 1:
        place = "" if options.beams else " (by generation_config.json)"
        raise ConfigError(
            f"beams (--beams) is {beams}{place} and tokens are drawn (--sample); choose one: give "
            "--beams 1 to draw, or leave out --sample"
        )
    for name in _SAMPLING:
        if getattr(options, name) is not None and not sample:
            raise ConfigError(
                f"{_option(name)} is given, but tokens are drawn only with sample (--sample); "
                "add it, or leave the option out"
            )
    for name in ("length_penalty", "stop"):
        if getattr(options, name) is not None and beams == 1:
            raise ConfigError(
                f"{_option(name)} is given, but it is for beams; add beams (--beams 4), or leave "
                "the option out"
            )
    return beams, sample


def _answers(
    options: GenerationOptions, defaults: GenerationDefaults, beams: int, *, sample: bool
) -> int:
    if options.answers is None:
        most = MOST_BEAMS if sample else beams
        return min(defaults.answers or 1, most)
    if not sample and options.answers > beams:
        raise ConfigError(
            f"answers (--answers) is {options.answers}, and {beams} beam(s) give at most {beams}; "
            f"give --beams {options.answers} or more, or --sample"
        )
    return options.answers


def _option(name: str) -> str:
    return named_setting(GenerationOptions, name)


def _refused(name: str, value: object, advice: str) -> ConfigError:
    return ConfigError(f"{_option(name)} is {value}; {advice}")


def _token(text: str, name: str, tokenizer: Tokenizer) -> int:
    """The id of a token that is given by its name, or of a text that is one token."""
    number = tokenizer.token_to_id(text)
    if number is None:
        ids = tokenizer.bare().encode(text).ids.tolist()
        if len(ids) != 1 or ids[0] == tokenizer.special.unk:
            raise ConfigError(
                f"{_option(name)} is {text!r}, which is not one token of the vocabulary; "
                "`bertsmith tokenize` shows the tokens of a text"
            )
        number = int(ids[0])
    return number


def _forbidden(words: Sequence[str], tokenizer: Tokenizer) -> Iterator[tuple[int, ...]]:
    """The token ids of each word, at the start of a text and after a space."""
    if not words:
        return
    bare = tokenizer.bare()
    for word in words:
        if not word.strip():
            raise ConfigError(f"forbid (--forbid) has the word {word!r}, which is empty; remove it")
        forms = {tuple(bare.encode(form).ids.tolist()) for form in (word, f" {word}")}
        for ids in sorted(forms):
            if not ids or tokenizer.special.unk in ids:
                raise ConfigError(
                    f"forbid (--forbid) has {word!r}, which is outside the vocabulary: the model "
                    "cannot write it; remove it"
                )
            yield ids
