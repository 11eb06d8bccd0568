"""The losses of writing equal those of transformers' BERT under float masks, text by text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import randomized
from tiny_writing import LETTERS, pair_data, reversals, tiny_writing_folder
from torch import Tensor
from torch.nn import functional as F
from transformers import BertForMaskedLM

from bertsmith.errors import ConfigError
from bertsmith.folders.generation import Writes
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.nn.layout import picture, visibility
from bertsmith.random_keys import mixed_with
from bertsmith.tasks.write.arrange import Arrangement, MaskedPrefix, ShiftedPrefix, chosen_writes
from bertsmith.tasks.write.encoding import (
    EncodedPairs,
    PairEncoder,
    WritingLengths,
    unigram_entropy,
)
from bertsmith.training.kinds.write.written import (
    first_sentence,
    shortened,
    token_losses,
    wrong_source,
)

WRITES = Writes(by="shift")
MASK = 4
PAIRS = [
    ("w1 w2 w3", "w4 w5"),
    ("w6", "w7 w8 w9 w1 w2"),
    ("w3 w3 w4 w5 w6 w7", "w2"),
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedFolder:
    """A tiny masked LM whose weights are all random."""
    path = tmp_path_factory.mktemp("random") / "model"
    first = load_model(tiny_writing_folder(path.with_name("plain")))
    randomized(first.model)
    save_model(first.model, first.tokenizer, path)
    return load_model(path)


@pytest.fixture(scope="module")
def oracle(loaded: LoadedFolder) -> BertForMaskedLM:
    return BertForMaskedLM.from_pretrained(loaded.folder.path).eval()


@pytest.fixture(scope="module")
def pairs(loaded: LoadedFolder) -> EncodedPairs:
    encoder = PairEncoder(loaded.tokenizer, loaded.model.spec)
    return encoder.encode(pair_data(PAIRS), WritingLengths(source=16, target=8))


def prefix_mask(source: int, target: int) -> Tensor:
    size = source + target
    sees = torch.zeros(size, size, dtype=torch.bool)
    for row in range(size):
        for column in range(size):
            sees[row, column] = column < source or (row >= source and column <= row)
    return torch.where(sees, 0.0, -1e30)[None, None]


def oracle_logits(oracle: BertForMaskedLM, source: list[int], target: list[int]) -> Tensor:
    with torch.no_grad():
        return oracle(
            input_ids=torch.tensor([source + target]),
            token_type_ids=torch.tensor([[0] * len(source) + [1] * len(target)]),
            attention_mask=prefix_mask(len(source), len(target)),
        ).logits[0]


def test_shifted_loss(loaded: LoadedFolder, oracle: BertForMaskedLM, pairs: EncodedPairs) -> None:
    total, count = 0.0, 0
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        logits = oracle_logits(oracle, source.tolist(), target.tolist())
        at = slice(len(source) - 1, len(source) + len(target) - 1)
        total += float(F.cross_entropy(logits[at], torch.tensor(target.tolist()), reduction="sum"))
        count += len(target)
    found = token_losses(loaded.model, ShiftedPrefix(WRITES), pairs)
    assert found == pytest.approx(total / count, abs=2e-5)


def test_exact_loss_by_mask_is_that_of_writing_token_by_token(
    loaded: LoadedFolder, oracle: BertForMaskedLM, pairs: EncodedPairs
) -> None:
    total, count = 0.0, 0
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        for place, token in enumerate(target.tolist()):
            before = target.tolist()[:place]
            logits = oracle_logits(oracle, source.tolist(), [*before, MASK])[-1]
            total -= float(logits.log_softmax(0)[token])
            count += 1
    found = token_losses(loaded.model, MaskedPrefix(WRITES, MASK, 0.7), pairs)
    assert found == pytest.approx(total / count, abs=2e-5)


def test_loss_by_mask_in_training(
    loaded: LoadedFolder, oracle: BertForMaskedLM, pairs: EncodedPairs
) -> None:
    keys = mixed_with(7, np.arange(3))
    batch = MaskedPrefix(WRITES, MASK, 0.7).training(pairs.sources, pairs.targets, keys)
    hidden, _ = batch.hidden(loaded.model)
    ours = loaded.model.logits("masked_lm", hidden)
    starts, lengths = batch.inputs.layout.starts, batch.inputs.layout.lengths
    rows = []
    for start, length, source in zip(starts, lengths, pairs.sources, strict=True):
        ids = batch.inputs.ids[start : start + length].tolist()
        logits = oracle_logits(oracle, ids[: len(source)], ids[len(source) :])
        at = [row - start for row in batch.at.tolist() if start <= row < start + length]
        assert all(ids[row] == MASK for row in at)
        assert len(at) == max(1, round(0.7 * (length - len(source))))
        rows.append(logits[at])
    torch.testing.assert_close(ours, torch.cat(rows), rtol=0, atol=2e-5)
    again = MaskedPrefix(WRITES, MASK, 0.7).training(pairs.sources[1:], pairs.targets[1:], keys[1:])
    assert batch.of.tolist()[-len(again.of) :] == again.of.tolist()  # alone as in a batch


def test_the_last_separator_is_hidden_as_often_as_others() -> None:
    target = np.array([9, 8, 7, 3], dtype=np.int32)
    keys = mixed_with(1, np.arange(2_000))
    batch = MaskedPrefix(WRITES, MASK, 0.5).training(
        [np.array([2, 5, 3], dtype=np.int32)] * 2_000, [target] * 2_000, keys
    )
    counts = np.bincount(batch.of.numpy(), minlength=10)[[9, 8, 7, 3]]
    assert counts.sum() == 4_000
    assert ((counts > 900) & (counts < 1_100)).all()


def test_visibility_of_both_arrangements(pairs: EncodedPairs) -> None:
    one = [pairs.sources[1]], [np.array([7, 8, 3], dtype=np.int32)]  # [CLS] w [SEP] | a b [SEP]
    shift = ShiftedPrefix(WRITES).exact(*one).inputs.layout
    assert picture(visibility(shift.sees, shift.lengths)) == [
        "###...",
        "###...",
        "###...",
        "####..",
        "#####.",
        "######",
    ]
    exact = MaskedPrefix(WRITES, MASK, 1.0).exact(*one).inputs.layout
    assert picture(visibility(exact.sees, exact.lengths)) == [
        "###......",
        "###......",
        "###......",
        "####.....",
        "#####....",
        "######...",
        "###...#..",
        "####...#.",
        "#####...#",
    ]
    assert exact.positions.tolist() == [0, 1, 2, 3, 4, 5, 3, 4, 5]


def test_another_source_costs_what_loops_say(loaded: LoadedFolder) -> None:
    encoder = PairEncoder(loaded.tokenizer, loaded.model.spec)
    rows = reversals(5)
    encoded = encoder.encode(pair_data(rows), WritingLengths(source=16, target=8))
    found = wrong_source(loaded.model, ShiftedPrefix(WRITES), encoded)
    rotated = encoder.encode(
        pair_data([(rows[(n + 1) % 5][0], rows[n][1]) for n in range(5)]),
        WritingLengths(source=16, target=8),
    )
    assert found is not None
    own, other = (
        token_losses(loaded.model, ShiftedPrefix(WRITES), one) for one in (encoded, rotated)
    )
    assert found == pytest.approx({"own": own, "other": other, "costs": other - own})
    same = EncodedPairs(sources=[encoded.sources[0]] * 3, targets=encoded.targets[:3])
    assert wrong_source(loaded.model, ShiftedPrefix(WRITES), same) is None


def test_targets_are_never_cut_and_sources_give_way(loaded: LoadedFolder) -> None:
    encoder = PairEncoder(loaded.tokenizer, loaded.model.spec)
    data = pair_data([(" ".join(LETTERS), "w1 w2 w3"), ("w1", "w2")])
    lengths = encoder.lengths([data], 20)
    assert lengths == WritingLengths(source=16, target=4)
    encoded = encoder.encode(data, lengths)
    assert list(encoded.cut) == [6, 0]
    assert encoded.cut_rows == 1
    assert [len(one) for one in encoded.targets] == [4, 2]
    assert encoded.targets[0][-1] == loaded.tokenizer.special.sep
    with pytest.raises(ConfigError, match=r"pairs.tsv, line 1: the target has 4 tokens"):
        encoder.lengths([data], 11)
    long = pair_data([("w1", " ".join(LETTERS * 4))])
    with pytest.raises(ConfigError, match=r"the 64 positions of the model leave 0"):
        encoder.lengths([long], 256)


def test_a_source_as_the_model_reads_it(loaded: LoadedFolder) -> None:
    assert shortened(loaded.tokenizer, "w1 w2 w3", 4) == "w1 w2"
    assert shortened(loaded.tokenizer, "w1 w2", 4) == "w1 w2"


def test_first_sentences() -> None:
    assert first_sentence(" One two. Three.") == "One two."
    assert first_sentence("今天好。明天？") == "今天好。"
    assert first_sentence("no end") == "no end"
    assert first_sentence("3.5 is one! Yes") == "3.5 is one!"


def test_entropy_of_single_tokens() -> None:
    targets = [np.array([1, 1], dtype=np.int32), np.array([2, 3], dtype=np.int32)]
    assert unigram_entropy(targets) == pytest.approx(1.5 * np.log(2))


def test_the_two_ways_of_writing_are_not_mixed(loaded: LoadedFolder) -> None:
    spec = loaded.model.spec
    assert chosen_writes(spec, None, "auto", usual="mask", folder="m").by == "mask"
    stored = Writes(by="shift", source_segment=4, target_segment=5)
    assert chosen_writes(spec, stored, "auto", usual="mask", folder="m") == stored
    with pytest.raises(ConfigError, match=r"m learned to write by shift, and writing.by = mask"):
        chosen_writes(spec, stored, "mask", usual="mask", folder="m")
    plain = chosen_writes(replace(spec, segments=1), None, "shift", usual="mask", folder="m")
    assert plain == Writes(by="shift", source_segment=0, target_segment=0)


def test_arrangements_are_the_same_for_any_batch(
    loaded: LoadedFolder, pairs: EncodedPairs, tmp_path: Path
) -> None:
    for arrangement in (ShiftedPrefix(WRITES), MaskedPrefix(WRITES, MASK, 0.7)):
        together = token_losses(loaded.model, arrangement, pairs)
        alone = _one_by_one(loaded, arrangement, pairs)
        assert together == pytest.approx(alone, abs=1e-5)


def _one_by_one(loaded: LoadedFolder, arrangement: Arrangement, pairs: EncodedPairs) -> float:
    total, count = 0.0, 0
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        one = EncodedPairs(sources=[source], targets=[target])
        total += token_losses(loaded.model, arrangement, one) * len(target)
        count += len(target)
    return total / count
