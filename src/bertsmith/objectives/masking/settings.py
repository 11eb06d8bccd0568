"""The settings of a masking scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self, Union

from pydantic import BeforeValidator, Field, model_validator

from bertsmith.config import Settings
from bertsmith.errors import unknown
from bertsmith.objectives.masking.grouping import GROUPINGS, GroupingSettings, Token
from bertsmith.objectives.masking.replacement import REPLACEMENTS, Mix, ReplacementSettings

Rate = Annotated[float, Field(gt=0.0, le=1.0)]


def _by_name(kind: str, table: dict[str, Any]) -> BeforeValidator:
    """Lets `"span"` stand for `{kind = "span"}`, and lists the known names otherwise."""

    def read(value: object) -> object:
        named = value.get("kind") if isinstance(value, dict) else value
        if isinstance(named, str) and named not in table:
            raise ValueError(str(unknown(kind, named, table)))
        return {"kind": value} if isinstance(value, str) else value

    return BeforeValidator(read)


if TYPE_CHECKING:
    AnyGrouping = GroupingSettings
    AnyReplacement = ReplacementSettings
else:
    AnyGrouping = Annotated[
        Union[tuple(GROUPINGS.values())],  # noqa: UP007 - made from the table
        Field(discriminator="kind"),
        _by_name("grouping", GROUPINGS),
    ]
    AnyReplacement = Annotated[
        Union[tuple(REPLACEMENTS.values())],  # noqa: UP007
        Field(discriminator="kind"),
        _by_name("replacement", REPLACEMENTS),
    ]


class FallingRate(Settings):
    """A rate that changes linearly from `start` to `end` until a share of training is done."""

    start: Rate = 0.3
    end: Rate = 0.15
    until: Rate = 1.0

    def at(self, share: float) -> float:
        """The rate when `share` of training (0 to 1) is done."""
        done = min(max(share / self.until, 0.0), 1.0)
        return self.start + (self.end - self.start) * done


class GroupingStage(Settings):
    """A grouping and the share of training at which the next one takes over."""

    grouping: AnyGrouping
    until: Rate = 1.0


class MaskSettings(Settings):
    """A masking scheme.

    `grouping` is a name, a table with its settings, or a list of stages. `copies` makes masking
    static: so many different masks of a text, used in turn; without it each epoch has its own.
    """

    grouping: (
        AnyGrouping | Annotated[tuple[GroupingStage, ...], Field(min_length=1, strict=False)]
    ) = Token()
    rate: Rate | FallingRate = 0.15
    replacement: AnyReplacement = Mix()
    copies: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ends = [stage.until for stage in self.stages]
        if ends != sorted(set(ends)):
            raise ValueError(f"stages must end one after another, not at {ends}")
        return self

    @property
    def stages(self) -> tuple[GroupingStage, ...]:
        """The groupings as stages, one for all of training where there is only one."""
        if isinstance(self.grouping, tuple):
            return self.grouping
        return (GroupingStage.model_construct(grouping=self.grouping, until=1.0),)

    def copy_of(self, epoch: int) -> int:
        """The number that examples and masks of an epoch are drawn from: static masking repeats."""
        return epoch if self.copies is None else epoch % self.copies
