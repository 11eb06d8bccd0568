"""Text by filling: what `bertsmith generate` does with a masked LM and without a text."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.row_files import AnswerOutput
from bertsmith.errors import ConfigError
from bertsmith.setting import FILLING, OUTPUT, Setting, settings_of

if TYPE_CHECKING:
    from bertsmith.runtime.generation.options import GenerationOptions

Scores = Annotated[
    bool, Setting("Also the score of each answer: log-probability per token.", OUTPUT)
]
Stream = Annotated[bool, Setting("Print words as soon as they are written.", OUTPUT)]
Start = Annotated[
    str | None,
    Setting(
        "Text to begin with; its [MASK] tokens are filled, or --length masks after it.",
        FILLING,
        metavar="TEXT",
    ),
]
Length = Annotated[int | None, Setting("Masks to fill; 20 if unset.", FILLING)]
Steps = Annotated[
    int | None,
    Setting(
        "Draws, each at a random place with all others in sight; 500.", FILLING, flag="--fill-steps"
    ),
]
PlaceOrder = Annotated[
    Literal["random", "left_to_right"] | None,
    Setting("Random places, or each place once from left to right.", FILLING, flag="--fill-order"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingChoice:
    """How a masked LM writes by filling."""

    start: Start = None
    length: Length = None
    steps: Steps = None
    order: PlaceOrder = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options was given."""
        return any(getattr(self, one.name) is not None for one in fields(self))

    def refuse(self) -> None:
        """Refuse the options where a text is written word by word."""
        for one in settings_of(FillingChoice):
            if getattr(self, one.name) is not None:
                raise ConfigError(
                    f"{one.flag} is for text by filling, which needs a masked LM and no text: "
                    f"bertsmith generate my-bert --length 20; leave {one.flag} or the text out"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOutput(AnswerOutput):
    """The same; a single text may come word by word."""

    scores: Scores = False
    stream: Stream = False


SHARED = ("temperature", "top_k", "seed", "answers")


def write_by_filling(
    folder: str,
    choice: FillingChoice,
    writing: GenerationOptions,
    output: GenerateOutput,
    *,
    device: str,
    threads: int | None,
) -> None:
    """Write texts with the masked LM of a folder and print them."""
    import torch

    from bertsmith.hardware.environment import thread_count
    from bertsmith.runtime.generation.filling import FillingOptions
    from bertsmith.runtime.loading import load

    _check(writing, output)
    given = {name: getattr(writing, name) for name in SHARED}
    given |= {one.name: getattr(choice, one.name) for one in fields(choice)}
    options = FillingOptions(**{name: value for name, value in given.items() if value is not None})
    torch.set_num_threads(threads or thread_count())
    with load(folder, device=device, precision="fp32", threads=threads) as model:
        texts = model.sample_by_filling(options)
    if output.as_json:
        write_json({"method": "sampling by filling", "answers": [one.to_json() for one in texts]})
        return
    several = len(texts) > 1
    for number, one in enumerate(texts, start=1):
        cells = [str(number)] if several else []
        cells += [f"{one.score:.4f}"] if output.scores else []
        write_lines(["\t".join([*cells, one.text])])


def _check(writing: GenerationOptions, output: GenerateOutput) -> None:
    """Refuse what only text written word by word has."""
    plain = type(writing)()
    for one in fields(writing):
        if one.name not in SHARED and getattr(writing, one.name) != getattr(plain, one.name):
            name = one.name.replace("_", "-")
            raise ConfigError(
                f"--{name} is not for text by filling, which draws every token; leave it out"
            )
    if output.out is not None or output.stream:
        name = "--stream" if output.stream else "--out"
        raise ConfigError(f"{name} is not for text by filling; leave it out")
