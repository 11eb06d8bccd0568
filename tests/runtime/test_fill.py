"""Masks filled as transformers fills them, and no other control token taken from a text."""

from __future__ import annotations

import json

import pytest
import torch
from masked_models import masked_folder, tokenizer

from bertsmith.errors import FolderError, TextError, TooLongError
from bertsmith.runtime.loading import load

pytestmark = pytest.mark.usefixtures("edited_folders")


def test_guesses_equal_those_of_transformers(folder, model) -> None:
    from transformers import BertForMaskedLM

    reference = BertForMaskedLM.from_pretrained(folder).eval()
    text = "the man went to [MASK] store and [MASK] milk ."
    ids = model.tokenizer.encode(text, allow_special=True).ids
    with torch.no_grad():
        logits = reference(torch.from_numpy(ids).long()[None]).logits[0]
    expected = logits.softmax(-1)[torch.from_numpy(ids == model.mask_id)]
    filled = model.fill(text, top=7)
    assert len(filled.guesses) == 2
    for guesses, row in zip(filled.guesses, expected, strict=True):
        order = row[: model.tokenizer.vocab_size].argsort(descending=True)[:7]
        assert [guess.id for guess in guesses] == order.tolist()
        assert torch.tensor([guess.score for guess in guesses]) == pytest.approx(
            row[order].numpy(), abs=1e-5
        )
        assert [model.tokenizer.token_to_id(guess.token) for guess in guesses] == order.tolist()


def test_the_text_holds_the_best_guess_of_each_mask(model) -> None:
    filled = model.fill("the [MASK] ran home .", top=1)
    again = model.tokenizer.encode(filled.text)
    assert filled.guesses[0][0].id in again.ids or filled.guesses[0][0].token.startswith("##")
    assert "[MASK]" not in filled.text


def test_rows_that_no_token_has_are_never_guessed(model) -> None:
    every = model.fill("[MASK]", top=10_000).guesses[0]
    assert len(every) == tokenizer().vocab_size
    assert all(guess.token for guess in every)


def test_other_control_tokens_are_refused_by_name(model) -> None:
    with pytest.raises(TextError, match=r"'\[SEP\]'"):
        model.fill("the [MASK] [SEP] ran")
    assert model.fill("the [MASK] § ran").guesses, "an unknown character is no control token"


def test_a_text_without_a_mask_or_too_long_is_refused(model) -> None:
    with pytest.raises(TextError, match=r"no \[MASK\]"):
        model.fill("the man")
    with pytest.raises(TooLongError):
        model.fill("[MASK] " + "man " * 600)


def test_a_folder_without_the_head_says_where_one_is(tmp_path) -> None:
    outer = masked_folder(tmp_path / "electra", heads=("replaced_token",), variant="electra")
    with pytest.raises(FolderError, match="replaced_token"):
        load(outer, precision="fp32").fill("[MASK]")
    masked_folder(outer / "generator", variant="electra")
    with pytest.raises(FolderError, match="generator has one"):
        load(outer, precision="fp32").fill("[MASK]")
    assert load(outer / "generator", precision="fp32").masked.fill("[MASK]").guesses


def test_the_command_shows_lines_and_json(folder, capsys) -> None:
    from bertsmith.cli.commands.fill import fill

    fill(model=str(folder), text="the [MASK] ran [MASK] .", top=2, as_json=True)
    tree = json.loads(capsys.readouterr().out)
    assert [len(guesses) for guesses in tree["guesses"]] == [2, 2]
    assert set(tree["guesses"][0][0]) == {"token", "id", "score"}


def test_a_causal_model_is_refused(tmp_path) -> None:
    path = masked_folder(tmp_path / "m")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"is_decoder": True}))
    with pytest.raises(FolderError, match="is a causal model, which predicts the next token"):
        load(path).fill("the [MASK] ran home .")
