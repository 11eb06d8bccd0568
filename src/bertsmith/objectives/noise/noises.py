"""The noises by name, and several of them one after another.

To add one: a file with a function of rows and a class of its settings, a line in NOISES.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from bertsmith.config import named_by_kind
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.objectives.noise.deletion import Deletion
from bertsmith.objectives.noise.infilling import Infilling
from bertsmith.objectives.noise.noised import Noise, Noised, NoiseSettings
from bertsmith.objectives.noise.rotation import Rotation
from bertsmith.objectives.noise.shuffle import Permutation
from bertsmith.objectives.noise.token_masking import TokenMasking
from bertsmith.text.tokenizer import Tokenizer

NOISES: dict[str, type[NoiseSettings]] = {
    "masking": TokenMasking,
    "deletion": Deletion,
    "infilling": Infilling,
    "permutation": Permutation,
    "rotation": Rotation,
}

if TYPE_CHECKING:
    AnyNoise = NoiseSettings
else:
    AnyNoise = Annotated[
        Union[tuple(NOISES.values())],  # noqa: UP007 - made from the table
        Field(discriminator="kind"),
        named_by_kind("noise", NOISES),
    ]


def noising(settings: Sequence[NoiseSettings], tokenizer: Tokenizer) -> Noise:
    """Several noises in this order, each with random numbers of its own."""
    if not settings:
        raise ConfigError(f"name at least one noise: {', '.join(NOISES)}")
    noises = [
        one.make(tokenizer, f"noise {number} {one.kind}") for number, one in enumerate(settings)
    ]

    def noise(rows: RowsBatch) -> Noised:
        last = noised = noises[0](rows)
        for one in noises[1:]:
            rows = last.rows(rows)
            last = one(rows)
            noised = last.after(noised)
        return noised

    return noise
