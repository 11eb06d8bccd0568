"""The token that a decoder starts with has one source, from training to what users generate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, word_tokenizer
from tiny_writing import LETTERS, reversals
from transformers import BartForConditionalGeneration

import bertsmith
from bertsmith.folders.read import load_model, read_folder
from bertsmith.folders.write import save_model
from bertsmith.labeled.spec import DataSpec
from bertsmith.models.build import build
from bertsmith.models.spec import DecoderSpec
from bertsmith.runtime.generation.options import GenerationOptions

IN_CONFIG, START = 3, len(SPECIAL) + 7  # of config.json, and of generation_config.json
PAIRS = reversals(24)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder-decoder whose two files name different tokens, after training."""
    place = tmp_path_factory.mktemp("start")
    spec = shrunk("bart", vocab_size=len(SPECIAL) + len(LETTERS), hidden=32, heads=2, rows=40)
    spec = replace(spec, decoder=DecoderSpec(layers=2, heads=2, feed_forward=64, start=IN_CONFIG))
    generator = torch.Generator().manual_seed(1)
    model = build("bart", spec, heads=["language_model"], generator=generator)
    save_model(model, word_tokenizer(LETTERS), place / "model")
    published = place / "model" / "generation_config.json"
    published.write_text(json.dumps({"decoder_start_token_id": START, "eos_token_id": 3}))
    rows = place / "pairs.tsv"
    rows.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS))
    bertsmith.finetune(
        rows,
        model=str(place / "model"),
        out=place / "out",
        spec=DataSpec(task="write", text=("source", "target")),
        settings={"plan.steps": 150, "plan.batch": 16, "optimizer.lr": 3e-3},
    )
    return place / "out"


def test_the_file_that_texts_are_written_from_decides(trained: Path) -> None:
    for folder in (trained.parent / "model", trained):
        decoder = read_folder(folder).spec.decoder
        assert decoder is not None
        assert decoder.start == START
        assert load_model(folder).model.spec.decoder == decoder


def test_the_folder_says_so_in_both_files(trained: Path) -> None:
    for name in ("config.json", "generation_config.json"):
        assert json.loads((trained / name).read_bytes())["decoder_start_token_id"] == START


def test_training_began_with_it(trained: Path) -> None:
    model = load_model(trained)
    reference = BartForConditionalGeneration.from_pretrained(trained).eval()
    losses = {}
    for start in (START, IN_CONFIG):
        total = 0.0
        for source, target in PAIRS[:8]:
            ids, wanted = (model.tokenizer.encode(text).ids.tolist() for text in (source, target))
            read = torch.tensor([[start, *wanted[:-1]]])
            with torch.no_grad():
                logits = reference(input_ids=torch.tensor([ids]), decoder_input_ids=read).logits
            total += float(torch.nn.functional.cross_entropy(logits[0], torch.tensor(wanted)))
        losses[start] = total / 8
    assert losses[START] < losses[IN_CONFIG] - 0.05


def test_generate_begins_with_it_as_transformers_does(trained: Path) -> None:
    reference = BartForConditionalGeneration.from_pretrained(trained).eval()
    with bertsmith.load(trained, precision="fp32") as model:
        for source, _ in PAIRS[:6]:
            ids = torch.tensor([model.tokenizer.encode(source).ids.tolist()])
            with torch.no_grad():
                wanted = reference.generate(ids, max_new_tokens=8, do_sample=False, num_beams=1)
            assert wanted[0, 0] == START
            (found,) = model.generate([source], GenerationOptions(max_new=8, beams=1))
            assert list(found.answers[0].ids) == wanted[0, 1:].tolist()
