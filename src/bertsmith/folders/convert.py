"""Rewriting a folder of any age or dialect as a clean one, and showing that nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.errors import ConfigError, WriteError
from bertsmith.files.atomic_folder import check_target
from bertsmith.folders.dialects.dialect import Dialect
from bertsmith.folders.dialects.transformers import DIALECTS, PICKLED
from bertsmith.folders.read import LoadedFolder, assemble, load_model, read_folder
from bertsmith.folders.resolve import resolve

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.build import Model

TOLERANCE = 1e-6  # of the largest absolute value of a layer
TEXTS = (
    "The bank raised its rates, and the river rose over its bank.",
    "Short.",
    "Nobody expected 1,234.5 naïve co-workers — not even at 3 a.m.!",
    "今天天气很好，我们去公园散步吧。",
    "语言模型从大量文本中学习 words in context。",
)
_RANDOM_TEXTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertReport:
    """What was written, and, if checked, how far each layer is from the source."""

    source: Path
    target: Path
    variant: str
    heads: tuple[str, ...]
    parameters: int
    unknown_keys: tuple[str, ...]
    differences: tuple[float, ...] | None = None  # largest absolute difference of each layer
    decoder: bool = False  # whether the last of them is the decoder
    scales: tuple[float, ...] | None = None  # largest absolute value of each layer

    @property
    def equal(self) -> bool:
        """Whether every layer agrees within the tolerance; True if nothing was compared."""
        pairs = zip(self.differences or (), self.scales or (), strict=True)
        return all(difference <= TOLERANCE * max(scale, 1.0) for difference, scale in pairs)


def convert(
    source: str | Path,
    target: Path,
    *,
    from_pickle: bool = False,
    dialects: Sequence[Dialect] = DIALECTS,
    check: bool = False,
    overwrite: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> ConvertReport:
    """Read `source`, write `target`; with `check` read that again and compare hidden states.

    `from_pickle` allows pickled weights, read by a child process. `dialects` are the layouts that
    the source may have, the first that fits counts. `step` is called with each step's name.
    """
    from bertsmith.folders.generation import all_extras
    from bertsmith.folders.write import save_model

    place = resolve(source).resolve()
    _check_places(place, target.resolve())
    check_target(target.absolute(), overwrite=overwrite)  # before the work, not after it
    step(f"reading {place}")
    folder = read_folder(place, dialects=(PICKLED, *dialects) if from_pickle else dialects)
    loaded = assemble(folder)
    step(f"writing {target}")
    save_model(
        loaded.model,
        folder.tokenizer,
        target,
        sentence=loaded.sentence if folder.sentence is not None else None,
        labels=folder.reading.labels,
        model_type=folder.reading.model_type,
        extras=all_extras(folder),
        overwrite=overwrite,
    )
    differences = scales = None
    if check:
        step("comparing hidden states")
        differences, scales = compare(loaded, load_model(target))
    return ConvertReport(
        source=place,
        target=target,
        variant=loaded.model.variant.name,
        heads=tuple(head.kind for head in loaded.model.head_specs),
        parameters=sum(parameter.numel() for parameter in loaded.model.parameters()),
        unknown_keys=folder.unknown_keys,
        differences=differences,
        decoder=loaded.model.decoder is not None,
        scales=scales,
    )


def compare(
    before: LoadedFolder, after: LoadedFolder
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The largest difference and the largest value of every layer, on texts and random ids."""
    import torch

    from bertsmith.nn.encoder import Want
    from bertsmith.nn.inputs import Inputs
    from bertsmith.nn.layout import Layout

    samples = _samples(before)
    again = _samples(after)
    if len(samples) != len(again) or not all(map(torch.equal, samples, again)):
        raise ConfigError(f"the tokenizer of {after.folder.path} gives other ids than the source's")
    inputs = Inputs(torch.cat(samples), Layout.of([len(sample) for sample in samples]))

    def layers_of(model: Model) -> list[Tensor]:
        encoded = model(inputs, want=Want(layers=True))
        layers = list(encoded.layers or ())
        if model.decoder is not None:  # the texts as their own targets
            layers.append(model.decode(inputs, encoded.hidden, inputs.layout))
        return layers

    with torch.inference_mode():
        pairs = list(zip(layers_of(before.model), layers_of(after.model), strict=True))
    differences = tuple(float((old - new).abs().max()) for old, new in pairs)
    return differences, tuple(float(old.abs().max()) for old, _ in pairs)


def _samples(loaded: LoadedFolder) -> list[Tensor]:
    """Ids of the built-in texts, if there is a tokenizer, and of random ones."""
    import torch

    spec = loaded.model.spec
    room = min(spec.longest or 64, 64)
    generator = torch.Generator().manual_seed(0)
    samples = [
        torch.randint(spec.vocab_size, (max(1, room - 3 * number),), generator=generator)
        for number in range(_RANDOM_TEXTS)
    ]
    if loaded.folder.tokenizer is not None:
        found, _ = loaded.folder.tokenizer.fast_ids(list(TEXTS), room)
        samples += [torch.from_numpy(ids).long() for ids in found]
    return samples


def _check_places(source: Path, target: Path) -> None:
    if target != source and (target in source.parents or source in target.parents):
        raise WriteError(f"{target} and {source} lie inside each other; give another place")
