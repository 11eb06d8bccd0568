"""`bertsmith mask preview`: the effect of a masking scheme or of noises on your own text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.data_options import TextOptions, texts_or_text
from bertsmith.cli.shared.options import SegmenterOption
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import MASKING, NOISE, OUTPUT, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bertsmith.objectives.masking.masking import MaskSettings
    from bertsmith.objectives.noise.noised import NoiseSettings
    from bertsmith.text.tokenizer import Tokenizer

app = typer.Typer(help="Preview masking schemes and noises.", no_args_is_help=True)


@app.callback()
def mask() -> None:
    """Preview masking schemes and noises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A masking scheme, or noises, as options."""

    grouping: Annotated[
        str,
        Setting(
            "What is masked together: token, whole_word, span, ngram, phrase, entity.", MASKING
        ),
    ] = "token"
    rate: Annotated[float, Setting("Share of tokens to mask.", MASKING)] = 0.15
    replacement: Annotated[
        str,
        Setting("What replaces masked tokens: mix (80/10/10), all_mask, random, similar.", MASKING),
    ] = "mix"
    draw_by: Annotated[
        str | None,
        Setting("For mix: draw per token, word or unit; token if unset.", MASKING),
    ] = None
    phrases: Annotated[
        Path | None, Setting("For phrase, entity: file with one per line.", MASKING)
    ] = None
    synonyms: Annotated[
        Path | None,
        Setting("For similar: file with one group of synonyms per line.", MASKING),
    ] = None
    vectors: Annotated[Path | None, Setting("For similar: word vectors as text.", MASKING)] = None

    noise: Annotated[
        list[str] | None,
        Setting(
            "Instead of masking, noise: masking, deletion, infilling, permutation or rotation, "
            "with a rate if wanted (infilling:0.3). Repeat it for several in order.",
            NOISE,
            metavar="NAME[:RATE]",
        ),
    ] = None

    def settings(self) -> MaskSettings:
        """The same as validated settings."""
        from bertsmith.config import validated
        from bertsmith.objectives.masking.masking import MaskSettings

        grouping = {"kind": self.grouping, "file": self.phrases}
        replacement = {
            "kind": self.replacement,
            "by": self.draw_by,
            "synonyms": self.synonyms,
            "vectors": self.vectors,
        }
        tree = {
            "grouping": _given(grouping),
            "replacement": _given(replacement),
            "rate": self.rate,
        }
        return validated(MaskSettings, tree, "mask preview")

    def noises(self) -> list[NoiseSettings]:
        """The noises in order, each a name or a name and a rate."""
        from bertsmith.config import validated
        from bertsmith.errors import ConfigError, unknown
        from bertsmith.objectives.noise.noises import NOISES

        made = []
        for one in self.noise or []:
            name, colon, rate = one.partition(":")
            if name not in NOISES:
                raise unknown("noise", name, NOISES)
            try:
                changes = {"rate": float(rate)} if colon else {}
            except ValueError:
                raise ConfigError(
                    f"--noise {one}: after the colon stands a rate, such as {name}:0.3"
                ) from None
            made.append(validated(NOISES[name], {"kind": name, **changes}, f"--noise {one}"))
        given = [one.name for one in fields(self) if getattr(self, one.name) != one.default]
        if made and given != ["noise"]:
            raise ConfigError(
                f"--{given[0]} is an option of masking and --noise takes its place: leave one "
                "out; the rate of a noise stands behind its name, such as infilling:0.3"
            )
        return made


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
    seed: Annotated[int, Setting("Random seed.", MASKING)] = 0,
    count: Annotated[int, Setting("Number of texts to show.", OUTPUT, min=0)] = 5,
    html: Annotated[
        Path | None, Setting("Also write an HTML page.", OUTPUT, metavar="FILE")
    ] = None,
) -> None:
    """Mask tokens of texts, or noise them, as pre-training would, and measure what was done.

    Examples:

        bertsmith mask preview all-MiniLM-L6-v2 "He likes playing chess." --grouping whole_word

        bertsmith mask preview my-vocab corpus.txt --grouping span --rate 0.3 --html mask.html

        bertsmith mask preview my-vocab corpus.txt --noise permutation --noise infilling:0.3
    """
    from bertsmith.cli.shared.console import note
    from bertsmith.files.atomic_file import write_staged
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.text.segment import segmenter as segmenter_named

    noises = scheme.noises()
    settings = None if noises else scheme.settings()
    tokenizer = load_tokenizer(model)
    if segmenter is not None:
        tokenizer = tokenizer.with_segmenter(segmenter_named(segmenter))
    texts = texts_or_text(source, reading)
    if settings is None:
        content = _shown_noise(texts, tokenizer, noises, count=count, seed=seed)
    else:
        content = _shown_masking(texts, tokenizer, settings, count=count, seed=seed)
    if html is not None:
        write_staged(html, content().encode("utf-8", "backslashreplace"))
        note(f"wrote {html}")


def _shown_masking(
    texts: Iterable[str], tokenizer: Tokenizer, settings: MaskSettings, *, count: int, seed: int
) -> Callable[[], str]:
    """Show masked texts; the result makes the page."""
    from bertsmith.cli.views.mask import preview_page, show
    from bertsmith.objectives.masking.masking import Masking
    from bertsmith.objectives.masking.preview import preview as preview_of

    masking = Masking.of(settings, tokenizer)
    found = preview_of(texts, tokenizer, masking, count=count, seed=seed)
    names = ("hidden", "mask", "random", "keep", "similar")
    rate = settings.rate if isinstance(settings.rate, float) else settings.rate.start
    requested = dict(zip(names, (rate, *masking.replacement.shares), strict=True))
    show(found, requested)
    return lambda: preview_page(found, requested, settings)


def _shown_noise(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    noises: Sequence[NoiseSettings],
    *,
    count: int,
    seed: int,
) -> Callable[[], str]:
    """Show noised texts; the result makes the page."""
    from bertsmith.cli.views.noise import noise_page, show_noise
    from bertsmith.objectives.noise.preview import preview_noise

    found = preview_noise(texts, tokenizer, noises, count=count, seed=seed)
    show_noise(found, noises)
    return lambda: noise_page(found, noises)


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {key: str(value) for key, value in options.items() if value is not None}
