"""Values of a config.json, checked: any JSON may come in, only what was meant goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertsmith.errors import ConfigError

Config = Mapping[str, object]


def present(config: Config, keys: Sequence[str]) -> str | None:
    """The first of `keys` that is set; two of them must not disagree."""
    found = [key for key in keys if config.get(key) is not None]
    for key in found[1:]:
        if config[key] != config[found[0]]:
            raise ConfigError(
                f"{found[0]} = {shown(config[found[0]])} and {key} = {shown(config[key])} "
                "mean the same thing and differ; remove one"
            )
    return found[0] if found else None


def integer(config: Config, key: str, low: int, high: int) -> int:
    """A whole number in [low, high]; true, 1.0 and "1" are none."""
    value = config[key]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(config, key, f"a whole number from {low:,} to {high:,}")
    return value


def fraction(config: Config, key: str) -> float:
    """A number in [0, 1)."""
    value = config[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise wrong(config, key, "a number from 0 up to, but not including, 1")
    return float(value)


def truth(config: Config, key: str) -> bool:
    """True or false; 1 and 0 are neither."""
    value = config[key]
    if not isinstance(value, bool):
        raise wrong(config, key, "true or false")
    return value


def text(config: Config, key: str, known: Sequence[str] | None = None) -> str:
    """A string, one of `known` if that is given."""
    value = config[key]
    if not isinstance(value, str) or (known is not None and value not in known):
        raise wrong(config, key, f"one of {', '.join(known)}" if known else "a string")
    return value


def wrong(config: Config, key: str, expected: str) -> ConfigError:
    """The error for a value that is not what its key asks for."""
    return ConfigError(f"{key} must be {expected}, not {shown(config[key])}")


def shown(value: object) -> str:
    """A value for a message, never longer than a line."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "a number of more than 60 digits"  # str() of a huge integer is slow, or refused
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'table'} of {len(value)}"
    line = repr(value)
    return line if len(line) <= 60 else line[:57] + "..."
