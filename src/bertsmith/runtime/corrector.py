"""Correcting texts with a trained model, and the folder that holds one.

A corrector gives edits with offsets and scores, nothing but characters for characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

import torch

from bertsmith.config import validated
from bertsmith.errors import FolderError, TextError, check_type
from bertsmith.folders.extras import (
    Extras,
    correction_extras,
    read_correction,
    read_detector,
)
from bertsmith.folders.kinds import MODEL, need, refusal
from bertsmith.folders.opened import OpenFolder
from bertsmith.folders.read import ModelFolder, load_model
from bertsmith.hardware.devices import torch_device
from bertsmith.metrics.arrays import Floats
from bertsmith.models.build import Model
from bertsmith.nn.packing import pack
from bertsmith.runtime.host import Host, not_finite
from bertsmith.tasks.spelling.edits import CorrectedText, Edit, check_threshold
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionBatch
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.tasks.spelling.settings import DetectorSettings
from bertsmith.text.tokenizer import Tokenizer

BUDGET = 2_048  # tokens of a batch


class Corrector:
    """A trained corrector in memory, for any number of texts; changes from `threshold` on are made.

    `Corrector.load` opens the folder of one.
    """

    def __init__(
        self,
        module: SoftMasked,
        tokens: CharacterTokens,
        *,
        threshold: float = 0.0,
        device: torch.device | str = "cpu",
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`turn` is held for each pass of the model."""
        check_threshold(threshold)
        self.module = module.to(device).eval()
        self.tokens = tokens
        self.threshold = threshold
        self.device = torch.device(device)
        self._turn = turn
        ids = list(tokens.characters)
        self._ids = torch.tensor(ids, device=self.device)
        self._names = [tokens.characters[number] for number in ids]

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu") -> Self:
        """The corrector of a folder that `finetune --task correct` has written."""
        where = torch_device(device)
        opened = OpenFolder.at(path)
        need(opened, "correct")
        loaded = load_model(opened, device=str(where))
        module, tokens, threshold = _parts(loaded.model, loaded.tokenizer, loaded.folder)
        return cls(module, tokens, threshold=threshold, device=where)

    @classmethod
    def of(cls, host: Host, folder: ModelFolder) -> Self:
        """The corrector of a model in memory; the detector is read from its folder."""
        module, tokens, threshold = _parts(host.model, host.tokenizer, folder)
        return cls(module, tokens, threshold=threshold, device=host.device, turn=host.torch_turn)

    def correct(
        self, texts: Iterable[str], *, threshold: float | None = None
    ) -> list[CorrectedText]:
        """Each text with its edits."""
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise TextError(
                f"correct takes a list of texts, not {type(texts).__name__}; for one text, give "
                "[text]"
            )
        every = list(texts)
        for text in every:
            check_type("text", text, str)
        least = self.threshold if threshold is None else check_threshold(threshold)
        return [
            CorrectedText.of(text, [edit for edit in edits if edit.score >= least])
            for text, edits in zip(every, self.proposals(every), strict=True)
        ]

    def proposals(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Every place where another character is likelier than the one that stands there."""
        found: list[list[Edit]] = [[] for _ in texts]
        features = self.tokens.features(texts)
        for part in pack([len(one.ids) for one in features], BUDGET):
            batch = CorrectionBatch.of([features[number] for number in part])
            best, scores = self._best(batch.to(self.device))
            for text, place, name, score in zip(
                batch.texts.tolist(), batch.places.tolist(), best, scores.tolist(), strict=True
            ):
                wrong = texts[text][place]
                if wrong != name:
                    found[text].append(
                        Edit(start=place, end=place + 1, wrong=wrong, right=name, score=score)
                    )
        return [sorted(edits, key=lambda edit: edit.start) for edits in found]

    def _best(self, batch: CorrectionBatch) -> tuple[list[str], Floats]:
        """The likeliest character of each place (U,), and its probability among all tokens."""
        with torch.inference_mode(), self._turn():
            hidden, _ = self.module(batch)
            chances = self.module.logits(hidden).float().softmax(-1)
            best = chances.index_select(1, self._ids).max(dim=1)
        if not best.values.isfinite().all():
            raise not_finite("a text")
        names = [self._names[number] for number in best.indices.tolist()]
        return names, best.values.double().cpu().numpy()


def corrector_extras(module: SoftMasked, *, threshold: float, max_length: int) -> Extras:
    """What a folder holds of a corrector besides its masked LM."""
    tensors = {} if module.detector is None else dict(module.detector.state_dict())
    section = {
        "threshold": threshold,
        "max_length": max_length,
        "detector": module.settings.model_dump(mode="json"),
    }
    return correction_extras(section, tensors)


def _parts(
    model: Model, tokenizer: Tokenizer, folder: ModelFolder
) -> tuple[SoftMasked, CharacterTokens, float]:
    home, path = folder.parts.transformer, folder.path
    section = read_correction(home)
    if section is None:
        raise refusal(path, MODEL, "correct")
    settings = validated(DetectorSettings, section["detector"], f"{path}: detector of correction")
    mask = tokenizer.special.mask
    if mask is None or "masked_lm" not in model.heads:
        raise FolderError(f"{path} has no masked-LM head or no mask token, so it cannot correct")
    module = SoftMasked(model, settings, mask)
    if module.detector is not None:
        _fill(module.detector, read_detector(home), path)
    tokens = CharacterTokens(tokenizer, max_length=section["max_length"], where=str(path))
    return module, tokens, section["threshold"]


def _fill(detector: torch.nn.Module, tensors: Mapping[str, Any], path: Path) -> None:
    wanted = {name: tuple(weight.shape) for name, weight in detector.state_dict().items()}
    stored = {name: tuple(weight.shape) for name, weight in tensors.items()}
    if wanted != stored:
        odd = sorted(set(wanted.items()) ^ set(stored.items()))[0][0]
        raise FolderError(
            f"{path}: the tensor {odd!r} of the detector is missing or has another shape than "
            "bertsmith.json says"
        )
    detector.load_state_dict(dict(tensors))
