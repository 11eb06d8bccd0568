"""Pre-training objectives: what is masked, by what, and what is predicted of it."""

from bertsmith.objectives.electra import ElectraSettings
from bertsmith.objectives.masked import MaskedSettings
from bertsmith.objectives.program import Program, ProgramSettings

PROGRAMS: dict[str, type[ProgramSettings]] = {
    "masked": MaskedSettings,
    "electra": ElectraSettings,
}

__all__ = ["PROGRAMS", "Program", "ProgramSettings"]
