"""`bertsmith mask preview`: the effect of a masking scheme on your own text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.data_options import TextOptions, texts_or_text
from bertsmith.cli.shared.options import OUTPUT, SegmenterOption, option, spread

if TYPE_CHECKING:
    from bertsmith.objectives.masking.masking import MaskSettings

app = typer.Typer(help="Preview masking schemes.", no_args_is_help=True)

MASKING = "Masking"


@app.callback()
def mask() -> None:
    """Preview masking schemes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A masking scheme as options."""

    grouping: Annotated[
        str,
        option(
            MASKING,
            "--grouping",
            "What is masked together: token, whole_word, span, ngram, phrase, entity.",
        ),
    ] = "token"
    rate: Annotated[float, option(MASKING, "--rate", "Share of tokens to mask.")] = 0.15
    replacement: Annotated[
        str,
        option(
            MASKING,
            "--replacement",
            "What replaces masked tokens: mix (80/10/10), all_mask, random, similar.",
        ),
    ] = "mix"
    by: Annotated[
        str | None,
        option(MASKING, "--by", "For mix: draw per token, word or unit; token if unset."),
    ] = None
    phrases: Annotated[
        Path | None, option(MASKING, "--phrases", "For phrase, entity: file with one per line.")
    ] = None
    synonyms: Annotated[
        Path | None,
        option(MASKING, "--synonyms", "For similar: file with one group of synonyms per line."),
    ] = None
    vectors: Annotated[
        Path | None, option(MASKING, "--vectors", "For similar: word vectors as text.")
    ] = None

    def settings(self) -> MaskSettings:
        """The same as validated settings."""
        from bertsmith.config import validated
        from bertsmith.objectives.masking.masking import MaskSettings

        grouping = {"kind": self.grouping, "file": self.phrases}
        replacement = {
            "kind": self.replacement,
            "by": self.by,
            "synonyms": self.synonyms,
            "vectors": self.vectors,
        }
        tree = {
            "grouping": _given(grouping),
            "replacement": _given(replacement),
            "rate": self.rate,
        }
        return validated(MaskSettings, tree, "mask preview")


@app.command()
@spread
def preview(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model or tokenizer folder, or a model name.")
    ],
    source: Annotated[
        str, typer.Argument(metavar="FILE|TEXT", help="File of texts, a text, or - for stdin.")
    ],
    scheme: Scheme,
    reading: TextOptions,
    segmenter: SegmenterOption = None,
    seed: Annotated[int, option(MASKING, "--seed", "Random seed.")] = 0,
    count: Annotated[int, option(OUTPUT, "--count", "Number of texts to show.", min=0)] = 5,
    html: Annotated[
        Path | None, option(OUTPUT, "--html", "Also write an HTML page.", metavar="FILE")
    ] = None,
) -> None:
    """Mask tokens of texts as pre-training would, and measure what was masked.

    Examples:

        bertsmith mask preview all-MiniLM-L6-v2 "He likes playing chess." --grouping whole_word

        bertsmith mask preview my-vocab corpus.txt --grouping span --rate 0.3 --html mask.html
    """
    from bertsmith.cli.shared.console import note
    from bertsmith.cli.views.mask import preview_page, show
    from bertsmith.files.atomic_file import write_staged
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.objectives.masking.masking import Masking
    from bertsmith.objectives.masking.preview import preview as preview_of
    from bertsmith.text.segment import segmenter as segmenter_named

    settings = scheme.settings()
    tokenizer = load_tokenizer(model)
    masking = Masking.of(settings, tokenizer)
    if segmenter is not None:
        tokenizer = tokenizer.with_segmenter(segmenter_named(segmenter))
    found = preview_of(texts_or_text(source, reading), tokenizer, masking, count=count, seed=seed)
    names = ("hidden", "mask", "random", "keep", "similar")
    requested = dict(zip(names, (scheme.rate, *masking.replacement.shares), strict=True))
    show(found, requested)
    if html is not None:
        content = preview_page(found, requested, settings)
        write_staged(html, content.encode("utf-8", "backslashreplace"))
        note(f"wrote {html}")


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {key: str(value) for key, value in options.items() if value is not None}
