"""Student's t distribution: its share below a value, and the value below which a share lies.

scipy is imported inside: it takes longer than all of bertsmith.
"""

from __future__ import annotations

from bertsmith.errors import ConfigError


def t_share_below(value: float, freedom: float) -> float:
    """The distribution function with `freedom` degrees of freedom."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def t_quantile(share: float, freedom: float) -> float:
    """The value below which this share of the distribution lies."""
    if not (0 < share < 1 and freedom > 0):
        raise ConfigError(
            f"a share between 0 and 1 and a positive freedom, not {share} and {freedom}"
        )
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
