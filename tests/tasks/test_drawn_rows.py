"""The mean of long texts, learned of tokens that are drawn anew in each step."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_tasks import TASK_WORDS, row, tiny_task_model, word_tokenizer

from bertsmith.errors import ConfigError
from bertsmith.nn.pooling import pool
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.text_vector import VectorSettings, drawn_rows
from bertsmith.training.finetune.model import USUAL_DRAWN, drawn_tokens
from bertsmith.training.finetune.recipe import EncoderSettings, FinetuneRecipe, TextVectorSettings

MEAN = VectorSettings(pooling="mean")


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), most=st.integers(1, 9))
def test_each_text_gives_rows_of_its_own_in_their_order(lengths: list[int], most: int) -> None:
    rows, counts = drawn_rows(lengths, most)
    assert counts == tuple(min(length, most) for length in lengths)
    start = 0
    for length, part in zip(lengths, rows.split(list(counts)), strict=True):
        assert part.tolist() == sorted(set(part.tolist()))
        assert start <= int(part[0])
        assert int(part[-1]) < start + length
        start += length


def test_every_row_is_drawn_alike_and_repeatably() -> None:
    torch.manual_seed(0)
    drawn = [drawn_rows([3, 8], 4)[0] for _ in range(400)]
    counts = torch.cat(drawn).bincount(minlength=11)
    assert counts[:3].tolist() == [400, 400, 400]
    # 400 draws of a half: a row is outside of 5 standard deviations once in a million
    assert counts[3:].sub(200).abs().max() < 50
    torch.manual_seed(0)
    again = [drawn_rows([3, 8], 4)[0] for _ in range(400)]
    assert all(map(torch.equal, drawn, again))


def test_the_mean_of_drawn_rows_is_the_mean_of_all_on_average() -> None:
    torch.manual_seed(1)
    values = torch.randn(40)
    means = torch.stack([values[drawn_rows([40], 10)[0]].mean() for _ in range(3000)])
    assert float(means.mean()) == pytest.approx(float(values.mean()), abs=0.02)
    assert float(means.std()) > 0.1


def test_a_model_reads_drawn_rows_while_it_trains_and_all_rows_otherwise() -> None:
    texts = ["red bird", " ".join(TASK_WORDS)]  # 4 and 14 tokens
    features = Classify(labels=("a", "b")).features(
        [row(number, (text,)) for number, text in enumerate(texts)],
        word_tokenizer(),
        LengthSettings(),
    )
    batch = task_batch(features)
    drawing = tiny_task_model(Classify(labels=("a", "b")), vector=MEAN)
    drawing.draw(5)
    whole = tiny_task_model(Classify(labels=("a", "b")), vector=MEAN)
    whole.eval()
    drawing.eval()
    assert torch.equal(drawing(batch), whole(batch))
    drawing.train()
    torch.manual_seed(4)
    found = drawing.passages(batch)
    torch.manual_seed(4)
    rows, counts = drawn_rows(batch.layout.lengths, 5)
    every = whole.model(batch.ids, batch.layout, segments=batch.segments).hidden
    torch.testing.assert_close(found, pool("mean", every[rows], counts))
    assert not torch.allclose(found[1], whole.passages(batch)[1])


@pytest.mark.parametrize(
    ("vector", "frozen", "wanted", "expected"),
    [
        (MEAN, False, None, USUAL_DRAWN),
        (MEAN, False, 0, 0),
        (MEAN, False, 7, 7),
        (MEAN, True, None, 0),
        (VectorSettings(pooling="max"), False, None, 0),
        (VectorSettings(pooling="mean", layers="sum4"), False, None, 0),
        (VectorSettings(), False, None, 0),
    ],
)
def test_tokens_are_drawn_where_a_mean_is_learned(
    vector: VectorSettings, frozen: bool, wanted: int | None, expected: int
) -> None:
    recipe = FinetuneRecipe(
        vector=TextVectorSettings(drawn=wanted), encoder=EncoderSettings(frozen=frozen)
    )
    assert drawn_tokens(recipe, Classify(labels=("a", "b")), vector) == expected


@pytest.mark.parametrize("frozen", [True, False])
def test_drawing_for_what_is_no_learned_mean_is_refused(frozen: bool) -> None:
    recipe = FinetuneRecipe(
        vector=TextVectorSettings(drawn=9), encoder=EncoderSettings(frozen=frozen)
    )
    vector = MEAN if frozen else VectorSettings(pooling="max")
    with pytest.raises(ConfigError, match=r"vector.drawn=9 is for the mean"):
        drawn_tokens(recipe, Classify(labels=("a", "b")), vector)
