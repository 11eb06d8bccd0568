"""The labels of a classifier as config.json spells them: id2label, num_labels, problem_type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bertsmith.errors import ConfigError
from bertsmith.models.config import values
from bertsmith.models.config.values import Config

PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")
MOST_LABELS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The names of classes in order, and the kind of problem where the config says it."""

    names: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def count(self) -> int:
        """How many outputs a classifier has: two without labels, as transformers assumes."""
        return len(self.names) or 2


NO_LABELS = Labels()


def read_labels(config: Config) -> Labels:
    """The labels of a config, LABEL_0, LABEL_1 ... where only their number is given."""
    problem = None
    if config.get("problem_type") is not None:
        problem = values.text(config, "problem_type", PROBLEMS)
    number = None
    if config.get("num_labels") is not None:
        number = values.integer(config, "num_labels", 1, MOST_LABELS)
    table = config.get("id2label")
    if table is None:
        names = tuple(f"LABEL_{label}" for label in range(number or 0))
        return Labels(names=names, problem=problem)
    if not isinstance(table, Mapping) or len(table) > MOST_LABELS:
        raise values.wrong(config, "id2label", "a table of class numbers and names")
    named = {str(key): name for key, name in table.items()}
    names_list = []
    for label in range(len(named)):
        name = named.get(str(label))
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ConfigError(
                f"id2label must name the classes 0 to {len(named) - 1}, but {label} is "
                f"{values.shown(name) if str(label) in named else 'missing'}"
            )
        names_list.append(name if isinstance(name, str) else values.shown(name))
    if len(set(names_list)) < len(names_list):
        twice = next(name for name in names_list if names_list.count(name) > 1)
        raise ConfigError(
            f"id2label calls two classes {values.shown(twice)}; their predictions would merge: "
            "give every class a name of its own"
        )
    if number is not None and named and number != len(named):
        raise ConfigError(f"num_labels is {number}, but id2label names {len(named)} classes")
    return Labels(names=tuple(names_list), problem=problem)


def write_labels(labels: Labels) -> dict[str, object]:
    """The keys that say these labels, none for none."""
    config: dict[str, object] = {}
    if labels.names:
        config["id2label"] = {str(label): name for label, name in enumerate(labels.names)}
        config["label2id"] = {name: label for label, name in enumerate(labels.names)}
    if labels.problem is not None:
        config["problem_type"] = labels.problem
    return config
