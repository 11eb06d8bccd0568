"""The shape of an ELMo model, and the sizes that were published."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bertsmith.config import Settings, Width
from bertsmith.text.whole_words.characters import LENGTH

Filter = tuple[Annotated[int, Field(gt=0, le=1_000)], Width]
Filters = Annotated[
    tuple[Annotated[Filter, Field(strict=False)], ...],
    Field(strict=False, min_length=1, max_length=64),
]
Clip = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
Highways = Annotated[int, Field(ge=0, le=100)]

PUBLISHED_FILTERS: Filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
SMALL_FILTERS: Filters = ((1, 16), (2, 32), (3, 64), (4, 64), (5, 64))


class ElmoSpec(Settings):
    """Widths and depths.

    `filters` are (width, number) of the convolutions. `hidden` is the width of LSTM cells, which
    `projection` narrows to the width of their outputs; without clips (None) values are unbounded.
    """

    length: Annotated[int, Field(ge=3, le=1_000)] = (
        LENGTH  # characters of a word, its two marks included
    )
    characters: Width = 16  # width of a character's vector
    filters: Filters = SMALL_FILTERS
    activation: Literal["relu", "tanh"] = "relu"
    highways: Highways = 1
    hidden: Width = 512
    projection: Width = 128
    layers: Annotated[int, Field(gt=0, le=100)] = 2
    residual: bool = True  # from the second layer on
    cell_clip: Clip = None
    projection_clip: Clip = None

    @property
    def convolved(self) -> int:
        """The outputs of all filters."""
        return sum(number for _, number in self.filters)

    @property
    def width(self) -> int:
        """The width of a layer: both directions."""
        return 2 * self.projection

    @property
    def projects_words(self) -> bool:
        """Whether a linear layer narrows the convolutions; published ones only ever narrow."""
        return self.convolved != self.projection

    @property
    def projects_cells(self) -> bool:
        """Whether cells are wider than their outputs."""
        return self.hidden != self.projection


def _published(hidden: int, projection: int, highways: int) -> ElmoSpec:
    return ElmoSpec(
        filters=PUBLISHED_FILTERS,
        highways=highways,
        hidden=hidden,
        projection=projection,
        cell_clip=3.0,
        projection_clip=3.0,
    )


ELMO_SIZES: dict[str, ElmoSpec] = {
    "small": ElmoSpec(),
    "published-small": _published(1024, 128, 1),
    "published-medium": _published(2048, 256, 1),
    "published": _published(4096, 512, 2),
}
