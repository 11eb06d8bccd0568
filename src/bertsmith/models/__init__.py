"""Which parts make which published model; importing this package does not import torch."""

from bertsmith.models.config.keys import ConfigReading, config_from_spec, spec_from_config
from bertsmith.models.positions import FunctionalRelative, Learned, Positions, SegmentRecurrent
from bertsmith.models.spec import Spec
from bertsmith.models.variant import HEAD_KINDS, Head, HeadSpec, Variant
from bertsmith.models.variants import VARIANTS

__all__ = [
    "HEAD_KINDS",
    "VARIANTS",
    "ConfigReading",
    "FunctionalRelative",
    "Head",
    "HeadSpec",
    "Learned",
    "Positions",
    "SegmentRecurrent",
    "Spec",
    "Variant",
    "config_from_spec",
    "spec_from_config",
]
