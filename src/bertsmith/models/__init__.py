"""Which parts make which published model; importing this package does not import torch."""

from bertsmith.models.config.keys import ConfigReading, config_from_spec, spec_from_config
from bertsmith.models.spec import FunctionalRelative, Learned, Spec
from bertsmith.models.variant import HEAD_KINDS, Head, HeadKind, Variant
from bertsmith.models.variants import VARIANTS

__all__ = [
    "HEAD_KINDS",
    "VARIANTS",
    "ConfigReading",
    "FunctionalRelative",
    "Head",
    "HeadKind",
    "Learned",
    "Spec",
    "Variant",
    "config_from_spec",
    "spec_from_config",
]
