"""XLNet is fine-tuned on every task, embeds, and writes from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import SHORT, rows, tiny_job
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

import bertsmith
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.runtime.generation.forms import QueryForm
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.runtime.generation.plain import PlainWriter
from bertsmith.training.kinds.labeled.learner import finetune


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    spec = shrunk("xlnet", vocab_size=len(SPECIAL) + len(TASK_WORDS), hidden=32, heads=2, rows=64)
    model = randomized(build("xlnet", replace(spec, pad_id=0), heads=["language_model"]))
    path = tmp_path_factory.mktemp("xlnet") / "m"
    save_model(model, word_tokenizer(), path)
    return str(path)


@pytest.mark.parametrize("task", ["multilabel", "regress", "tag", "answer", "choose"])
def test_every_task_trains_saves_and_predicts_again(task: str, folder: str, tmp_path: Path) -> None:
    done = finetune(tiny_job(folder, tmp_path / "out", task, recipe=SHORT))
    assert done.finished is not None
    held_out = rows(6, task, seed=9)
    texts = [one.texts if len(one.texts) > 1 else one.texts[0] for one in held_out]
    found = bertsmith.load(tmp_path / "out").predict(texts)
    again = bertsmith.load(tmp_path / "out").predict(texts)
    assert len(found) == 6
    assert [one.value for one in found] == [one.value for one in again]


def test_its_texts_have_vectors_that_do_not_depend_on_neighbors(folder: str) -> None:
    loaded = bertsmith.load(folder)
    texts = ["red stone", "small round river", "blue"]
    together = loaded.encode(texts)
    alone = np.concatenate([loaded.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_its_folder_writes_as_the_whole_text_read_again_says(folder: str) -> None:
    written = bertsmith.load(folder).generate(["red stone", "blue"], GenerationOptions(max_new=5))
    model = load_model(folder).model.eval()
    tokenizer = load_model(folder).tokenizer
    for prompt, one in zip(["red stone", "blue"], written, strict=True):
        ids = tokenizer.encode(prompt).ids[:-1].astype(np.int64)  # without the closing token
        writer = PlainWriter(model, QueryForm())
        state = writer.begin([ids])
        chosen = []
        for _ in range(5):
            chosen.append(int(state.logits.argmax()))
            if chosen[-1] == SPECIAL.index("[SEP]"):
                break
            writer.step(state, torch.tensor(chosen[-1:]))
        kept = [token for token in chosen if token >= len(SPECIAL)]
        assert one.text.split() == [TASK_WORDS[token - len(SPECIAL)] for token in kept]
