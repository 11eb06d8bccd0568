"""ERNIE with an embedding of tasks: the numbers of transformers, and folders both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from parity_families import ours, packed, padded, reference, texts
from tiny_models import randomized, shrunk

from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models import spec_from_config
from bertsmith.models.build import build
from bertsmith.nn import Inputs
from bertsmith.text.tokenizer import Tokenizer

CLOSE = {"rtol": 0.0, "atol": 2e-5}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e"]
IDS = [2, 5, 6, 7, 9, 8, 3]


def _tokenizer() -> Tokenizer:
    return Tokenizer.from_files({"vocab.txt": "\n".join(WORDS).encode()})


@pytest.mark.parametrize(
    ("ending", "heads"),
    [
        ("Model", {}),
        ("ForMaskedLM", {"masked_lm": "logits"}),
        (
            "ForPreTraining",
            {"masked_lm": "prediction_logits", "next_sentence": "seq_relationship_logits"},
        ),
    ],
)
@torch.no_grad()
def test_rows_and_logits_with_task_ids_equal_transformers(
    ending: str, heads: dict[str, str]
) -> None:
    theirs = reference("ernie", ending)
    model = ours(theirs)
    assert model.spec.tasks == 4
    ids, segments, layout = texts(model)
    tasks = torch.randint(0, 4, ids.shape, generator=torch.Generator().manual_seed(1))
    batch = padded(model, ids, segments, layout)
    batch["task_type_ids"] = torch.zeros_like(batch["input_ids"])
    for text, (start, length) in enumerate(zip(layout.starts, layout.lengths, strict=True)):
        batch["task_type_ids"][text, :length] = tasks[start : start + length]
    expected = theirs(**batch)
    inputs = Inputs(ids, layout, {"segments": segments, "tasks": tasks})
    hidden = model(inputs).hidden
    other = model(Inputs(ids, layout, {"segments": segments})).hidden
    assert float((hidden - other).abs().max()) > 0.1  # the tasks matter
    if not heads:
        torch.testing.assert_close(hidden, packed(expected.last_hidden_state, layout), **CLOSE)
    for kind, field in heads.items():
        of_text = kind == "next_sentence"
        rows = hidden[list(layout.starts)] if of_text else hidden
        answer = expected[field] if of_text else packed(expected[field], layout)
        torch.testing.assert_close(model.logits(kind, rows), answer, **CLOSE)


@torch.no_grad()
def test_a_published_folder_without_task_ids_is_bert_under_another_name(tmp_path: Path) -> None:
    theirs = reference("ernie", "ForMaskedLM", use_task_id=False, task_type_vocab_size=16)
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs").model
    assert loaded.spec.tasks == 0
    ids, segments, layout = texts(loaded)
    expected = packed(theirs(**padded(loaded, ids, segments, layout)).logits, layout)
    hidden = loaded(Inputs(ids, layout, {"segments": segments})).hidden
    torch.testing.assert_close(loaded.logits("masked_lm", hidden), expected, **CLOSE)


@pytest.mark.parametrize("tasks", [0, 5])
@torch.no_grad()
def test_a_folder_written_here_has_the_same_numbers_in_transformers_for_every_task(
    tasks: int, tmp_path: Path
) -> None:
    tiny = shrunk("ernie", vocab_size=len(WORDS), hidden=32, heads=4, rows=40)
    spec = replace(tiny, tasks=tasks, pooler=False)
    model = randomized(build("ernie", spec, heads=["masked_lm"]))
    save_model(model, _tokenizer(), tmp_path / "m")
    theirs, state = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert not state["missing_keys"]
    assert not state["unexpected_keys"]
    again = load_model(tmp_path / "m").model
    for task in range(max(tasks, 1)):
        ids = torch.tensor(IDS)
        given = torch.full_like(ids, task)
        channels = {"tasks": given} if tasks else {}
        inputs = Inputs.of(ids.numpy(), [len(IDS)], channels=channels)
        mine = again.logits("masked_lm", again(inputs).hidden)
        torch.testing.assert_close(mine, model.logits("masked_lm", model(inputs).hidden))
        with torch.inference_mode():
            other = theirs.eval()(ids[None], task_type_ids=given[None]).logits[0]
        torch.testing.assert_close(mine, other, **CLOSE)


@torch.no_grad()
def test_texts_without_a_task_have_the_one_that_the_folder_names(tmp_path: Path) -> None:
    spec = replace(shrunk("ernie", vocab_size=len(WORDS), hidden=32, heads=4, rows=40), task=2)
    model = randomized(build("ernie", spec))
    save_model(model, _tokenizer(), tmp_path / "m")
    loaded = load_model(tmp_path / "m").model
    assert loaded.spec.task == 2
    plain = Inputs.of(torch.tensor(IDS).numpy(), [len(IDS)])
    named = Inputs.of(
        plain.ids.numpy(), [len(IDS)], channels={"tasks": torch.full((len(IDS),), 2).numpy()}
    )
    assert torch.equal(loaded(plain).hidden, model(named).hidden)
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "m").eval()
    tasks = torch.full((1, len(IDS)), 2)
    other = theirs(plain.ids[None], task_type_ids=tasks).last_hidden_state[0]
    torch.testing.assert_close(loaded(plain).hidden, other, **CLOSE)


def test_a_task_that_no_row_stands_for_is_refused() -> None:
    config = {
        "model_type": "ernie",
        "vocab_size": 9,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
        "max_position_embeddings": 16,
    }
    assert spec_from_config(config).spec.tasks == 0
    assert spec_from_config({**config, "use_task_id": True}).spec.tasks == 3
    with pytest.raises(ConfigError, match="task 3 is not one of the 3 tasks"):
        spec_from_config({**config, "use_task_id": True, "task_type_id": 3})
    with pytest.raises(ConfigError, match="use_task_id must be true or false"):
        spec_from_config({**config, "use_task_id": 1})
    with pytest.raises(ConfigError, match="use_task_id = True would change"):
        spec_from_config({**config, "model_type": "bert", "use_task_id": True})
