"""The page of a choice of vectors: the measure by layer and pooling, and everything tried."""

from __future__ import annotations

from collections.abc import Iterable

from bertsmith.report.elements.charts import Curve, chart
from bertsmith.report.elements.page import facts, heading, page, paragraph, table
from bertsmith.sentences.tune.tune import Tried, TuneResult


def choice_page(result: TuneResult, *, title: str) -> str:
    """The whole page."""
    gain = result.gain
    sections = [
        paragraph(f"Chosen: {result.winner.candidate.name}.", "lead"),
        facts(
            [
                (result.measure, f"{result.winner.score:.4f} on {result.pairs:,} pairs"),
                ("best", f"{result.best.candidate.name}, {result.best.score:.4f}"),
                (
                    "against the folder as it is",
                    f"{gain.value:+.4f} (95 % interval {gain.low:+.4f} to {gain.high:+.4f})",
                ),
                ("tried", f"{len(result.tried)} ways"),
                ("corrections fitted on", result.fitted_on),
            ]
        ),
        paragraph(
            "The simplest way that the best one does not clearly beat is chosen, by paired "
            "bootstrap. Among many ways the best one looks better than it is: measure the chosen "
            "one again on other pairs."
        ),
        heading(f"{result.measure} by layer"),
        paragraph("Layer 0 are the embeddings. Whitened: the best number of dimensions."),
        chart(_curves(result), x_name="layer"),
        heading("Everything tried"),
        table(
            ["way", "dimensions", result.measure, "95 % interval"],
            [_row(one) for one in result.tried],
        ),
    ]
    return page(title, sections)


def _row(one: Tried) -> list[str]:
    interval = "" if one.interval is None else f"{one.interval.low:.4f} to {one.interval.high:.4f}"
    return [one.candidate.name, str(one.candidate.dimension), f"{one.score:.4f}", interval]


def _curves(result: TuneResult) -> list[Curve]:
    single = [one for one in result.tried if len(one.candidate.layers) == 1]
    curves = []
    for pooling in dict.fromkeys(one.candidate.pooling for one in single):
        for name, correction in (("", "none"), (", whitened", "whitening")):
            chosen = (
                one
                for one in single
                if one.candidate.pooling == pooling
                and one.candidate.correction == correction
                and not one.candidate.own
            )
            curves.append(Curve(name=f"{pooling}{name}", points=_best_by_layer(chosen)))
    return curves


def _best_by_layer(tried: Iterable[Tried]) -> tuple[tuple[float, float], ...]:
    best: dict[int, float] = {}
    for one in tried:
        (layer,) = one.candidate.layers
        best[layer] = max(best.get(layer, -2.0), one.score)
    return tuple((float(layer), best[layer]) for layer in sorted(best))
