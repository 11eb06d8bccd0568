"""Student's t distribution: its share below a value, and the value below which a share lies."""

from __future__ import annotations

import math

from bertsmith.errors import ConfigError

_TINY = 1e-300


def t_share_below(value: float, freedom: float) -> float:
    """The distribution function with `freedom` degrees of freedom."""
    whole = freedom + value * value
    # Both shares are passed on: 1 - x would lose the digits of a value near 0.
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / whole, value * value / whole)
    return 1.0 - tail if value > 0 else tail


def t_quantile(share: float, freedom: float) -> float:
    """The value below which this share of the distribution lies."""
    if not (0 < share < 1 and freedom > 0):
        raise ConfigError(
            f"a share between 0 and 1 and a positive freedom, not {share} and {freedom}"
        )
    # The upper half's tail is asked for, because 1 - share keeps the digits that share loses.
    tail = min(share, 1 - share)
    low, high = 0.0, 1.0
    while high < 1e150 and t_share_below(-high, freedom) > tail:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_share_below(-middle, freedom) > tail else (low, middle)
    return math.copysign((low + high) / 2, share - 0.5)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function at x = 1 - rest, by Lentz's continued fraction."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    # The fraction converges fast on this side only; the other follows by symmetry.
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, rest, x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * _log(x, rest) + b * _log(rest, x)
    c, d, fraction = 1.0, 0.0, 1.0
    for step in range(1000):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        fraction *= c * d
        if abs(1.0 - c * d) < 1e-16:
            break
    return math.exp(front) * (fraction - 1.0) / a


def _log(x: float, rest: float) -> float:
    return math.log(x) if x < rest else math.log1p(-rest)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
