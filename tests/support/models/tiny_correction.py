"""Texts of a toy language in which the right character follows from its left neighbor."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import torch
from tiny_models import randomized, shrunk

from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.runtime.corrector import corrector_extras
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.tasks.spelling.settings import DetectorSettings
from bertsmith.text.tokenizer import Tokenizer

FIRST, SECOND = "天地人日", "甲乙丙丁"  # 天 is always followed by 甲, ...
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAIRS = dict(zip(FIRST, SECOND, strict=True))


def chinese_tokenizer() -> Tokenizer:
    words = [*SPECIALS, *FIRST, *SECOND, *"月水火戊己", "a", "1", "，"]
    return Tokenizer.from_files(
        {
            "vocab.txt": "\n".join(words).encode(),
            "tokenizer_config.json": b'{"do_lower_case": true}',
        }
    )


def corrector_source(path: Path, *, hidden: int = 64, drawn: bool = False) -> str:
    """An untrained masked LM over the characters; `drawn`: every weight random."""
    tokenizer = chinese_tokenizer()
    spec = shrunk("bert", vocab_size=tokenizer.vocab_size, hidden=hidden, heads=2, rows=40)
    spec = replace(spec, dropout=0.0)
    model = build("bert", spec, heads=["masked_lm"], generator=torch.Generator().manual_seed(1))
    save_model(randomized(model, seed=3) if drawn else model, tokenizer, path)
    return str(path)


def untrained_corrector(path: Path) -> str:
    """The folder of a corrector as it is before training."""
    source = corrector_source(path.with_name(f"{path.name}-source"), hidden=16)
    return str(corrector_folder(path, Path(source), threshold=0.5))


def corrector_folder(path: Path, source: Path, *, threshold: float = 0.0) -> Path:
    """The folder of a corrector of a masked LM, as it is before training."""
    loaded = load_model(source)
    mask = loaded.tokenizer.special.mask
    assert mask is not None
    module = SoftMasked(loaded.model, DetectorSettings(width=4), mask)
    extras = corrector_extras(module, threshold=threshold, max_length=32)
    save_model(loaded.model, loaded.tokenizer, path, extras=extras)
    return path


def toy_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Wrong and right texts; about a third is clean."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        right = "".join(one + PAIRS[one] for one in rng.choices(FIRST, k=rng.randint(2, 6)))
        wrong = list(right)
        if rng.random() > 0.35:
            for _ in range(rng.randint(1, 2)):
                place = 2 * rng.randrange(len(right) // 2) + 1
                wrong[place] = rng.choice([one for one in SECOND if one != right[place]])
        found.append(("".join(wrong), right))
    return found


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    lines = "".join(f"{wrong}\t{right}\n" for wrong, right in pairs)
    path.write_text(f"wrong\tright\n{lines}", encoding="utf-8")
    return path
