"""Pre-training programs: how texts are changed and arranged, and what is predicted of them."""

from bertsmith.objectives.causal import CausalSettings
from bertsmith.objectives.continual.program import ContinualSettings
from bertsmith.objectives.denoise import DenoiseSettings
from bertsmith.objectives.electra import ElectraSettings
from bertsmith.objectives.entities.wklm import WklmSettings
from bertsmith.objectives.masked import MaskedSettings
from bertsmith.objectives.masked_span import MaskedSpanSettings
from bertsmith.objectives.permuted_lm import PermutationSettings
from bertsmith.objectives.program import Program, ProgramSettings
from bertsmith.objectives.unified import UnifiedSettings

PROGRAMS: dict[str, type[ProgramSettings]] = {
    "masked": MaskedSettings,
    "electra": ElectraSettings,
    "causal": CausalSettings,
    "unified": UnifiedSettings,
    "denoise": DenoiseSettings,
    "masked_span": MaskedSpanSettings,
    "permutation": PermutationSettings,
    "continual": ContinualSettings,
    "wklm": WklmSettings,
}

__all__ = ["PROGRAMS", "Program", "ProgramSettings"]
