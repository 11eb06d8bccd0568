"""`bertsmith lm perplexity`, `lm generate` and `lm convert`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.commands.corpus import Files, TextReading
from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Json
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, MODEL, SAMPLING, WRITING, Setting

LmFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Language model of `bertsmith lm train`.")
]
Prompt = Annotated[str, typer.Argument(metavar="TEXT", help="How the line begins.")]
MaxNew = Annotated[int, Setting("Maximum number of new tokens: words of a line.", WRITING, min=1)]
Lines = Annotated[int, Setting("Number of lines.", WRITING, min=1)]
Temperature = Annotated[
    float, Setting("Temperature of the softmax: 0 takes the most probable word.", SAMPLING, min=0)
]
TopK = Annotated[int | None, Setting("Draw among the K likeliest; all if unset.", SAMPLING, min=1)]
Seed = Annotated[int, Setting("Random seed.", SAMPLING, min=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixOptions:
    """Further models for a mixture, and the text that their weights are found on."""

    mix: Annotated[
        list[Path] | None,
        Setting(
            "Mix with this model, which was trained on the same words; can be repeated.",
            MODEL,
            metavar="DIR",
        ),
    ] = None
    validation: Annotated[
        list[Path] | None,
        Setting(
            "Text that the weights of the mixture are found on; else they are equal.",
            DATA,
            metavar="FILE",
        ),
    ] = None


@spread
def perplexity(
    model: LmFolder, files: Files, reading: TextReading, mixed: MixOptions, as_json: Json = False
) -> None:
    """Perplexity of text under a language model, with and without unknown words.

    The text is split as that of the training. Line ends count as words. Bits per character are
    comparable between models with different words; perplexities per word are not. With --mix the
    score is that of a mixture and named as one.

    Examples:

        bertsmith lm perplexity kn5 test.txt

        bertsmith lm perplexity lstm test.txt --mix kn5 --validation valid.txt

        bertsmith lm perplexity kn5 test.txt --form sentences --json
    """
    from bertsmith.api.language_models import score_language_model, score_mixture
    from bertsmith.cli.views.perplexity import mixture_text, score_text
    from bertsmith.corpus.sources import CorpusSettings
    from bertsmith.errors import ConfigError

    settings = CorpusSettings(form=reading.form, reading=reading.spec(), on_error=reading.on_error)
    texts = [Path(file) for file in files]
    if mixed.mix:
        found = score_mixture(
            [model, *mixed.mix], texts, validation=mixed.validation or (), settings=settings
        )
        lines, record = mixture_text(found), found.as_dict()
    else:
        if mixed.validation:
            raise ConfigError("--validation finds the weights of a mixture; give --mix, too")
        alone = score_language_model(model, texts, settings)
        lines, record = score_text(alone), alone.as_dict()
    if as_json:
        write_json(record)
        return
    write_lines(lines)


@spread
def generate(
    model: LmFolder,
    text: Prompt = "",
    max_new: MaxNew = 50,
    lines: Lines = 1,
    temperature: Temperature = 1.0,
    top_k: TopK = None,
    seed: Seed = 0,
) -> None:
    """Continue a line by drawing words from a language model.

    Examples:

        bertsmith lm generate kn5 "the movie was" --lines 3

        bertsmith lm generate kn5 --top-k 20 --temperature 0.8
    """
    from bertsmith.api.language_models import generate_with_language_model

    found = generate_with_language_model(
        model, [text] * lines, most=max_new, temperature=temperature, top=top_k, seed=seed
    )
    write_lines([f"{text} {line}".strip() for line in found])


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="ARPA file or n-gram folder.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="The other of the two.")],
) -> None:
    """Convert an ARPA file to an n-gram folder, or a folder to an ARPA file.

    Examples:

        bertsmith lm convert kn5 kn5.arpa

        bertsmith lm convert published.arpa.gz model
    """
    from bertsmith.api.language_models import convert_ngram

    write_lines([convert_ngram(source, target)])
