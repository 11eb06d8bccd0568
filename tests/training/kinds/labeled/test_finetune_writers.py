"""Models that write are fine-tuned for labels: causal BERT, GPT-2, BART and XLNet."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tiny_finetuning import RECIPE, SHORT, rows, tiny_job
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

import bertsmith
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.nn import Inputs, Layout
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import EncoderSettings, TextVectorSettings

CASES = {"bert": "last", "gpt2": "published", "bart": "published", "xlnet": "published"}
SEP = SPECIAL.index("[SEP]")


def _folder(path: Path, variant: str) -> str:
    spec = shrunk(variant, vocab_size=len(SPECIAL) + len(TASK_WORDS), hidden=32, heads=2, rows=64)
    spec = replace(spec, sees="before" if variant == "bert" else spec.sees, pad_id=0)
    if spec.decoder is not None:
        spec = replace(spec, decoder=replace(spec.decoder, start=SEP))
    model = build(variant, spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), path)
    return str(path)


@pytest.mark.parametrize("variant", CASES)
def test_they_learn_to_classify_and_predict_what_they_learned(variant: str, tmp_path: Path) -> None:
    source = _folder(tmp_path / "m", variant)
    done = finetune(tiny_job(source, tmp_path / "out"))
    assert done.finished is not None
    assert done.finished.model.head.to_json()["vector"]["pooling"] == CASES[variant]
    texts = [row.texts[0] for row in rows(30, seed=5)]
    predictions = bertsmith.load(tmp_path / "out").predict(texts)
    expected = [row.target.name for row in rows(30, seed=5)]
    right = sum(one.value == label for one, label in zip(predictions, expected, strict=True))
    assert right >= 27


@pytest.mark.parametrize("variant", ["gpt2", "bart", "xlnet"])
def test_transformers_gives_the_same_probabilities(variant: str, tmp_path: Path) -> None:
    source = _folder(tmp_path / "m", variant)
    finetune(tiny_job(source, tmp_path / "out", recipe=SHORT))
    loaded = bertsmith.load(tmp_path / "out")
    texts = [row.texts[0] for row in rows(5, seed=5)]
    kinds = transformers.AutoModelForSequenceClassification
    theirs = kinds.from_pretrained(tmp_path / "out").eval()
    theirs.config.eos_token_id = SEP
    for text, one in zip(texts, loaded.predict(texts), strict=True):
        ids = torch.tensor([loaded.tokenizer.encode(text).ids.tolist()])
        with torch.no_grad():
            chances = theirs(input_ids=ids).logits[0].softmax(-1)
        assert one.confidence == pytest.approx(float(chances.max()), abs=1e-5)


def test_a_frozen_bart_learns_its_head_alone(tmp_path: Path) -> None:
    source = _folder(tmp_path / "m", "bart")
    frozen = SHORT.model_copy(update={"encoder": EncoderSettings(dropout=0.0, frozen=True)})
    finetune(tiny_job(source, tmp_path / "out", recipe=frozen))
    before = load_file(tmp_path / "m" / "model.safetensors")
    after = load_file(tmp_path / "out" / "model.safetensors")
    for name, tensor in before.items():
        assert torch.equal(after[f"model.{name}"], tensor), name


def test_a_decoder_that_is_not_read_stays_as_it_was(tmp_path: Path) -> None:
    source = _folder(tmp_path / "m", "bart")
    recipe = SHORT.model_copy(update={"vector": TextVectorSettings(pooling="mean")})
    finetune(tiny_job(source, tmp_path / "out", recipe=recipe))
    before = load_file(tmp_path / "m" / "model.safetensors")
    after = load_file(tmp_path / "out" / "model.safetensors")
    same = {name for name, tensor in before.items() if torch.equal(after[name], tensor)}
    assert all(name in same for name in before if name.startswith("decoder."))
    assert "shared.weight" not in same


def test_the_first_token_of_a_causal_model_is_refused(tmp_path: Path) -> None:
    source = _folder(tmp_path / "m", "bert")
    for pooling in ("first", "published"):
        recipe = RECIPE.model_copy(update={"vector": TextVectorSettings(pooling=pooling)})
        with pytest.raises(ConfigError, match="sees nothing but itself"):
            finetune(tiny_job(source, None, recipe=recipe))


@pytest.mark.parametrize("variant", CASES)
def test_they_embed_with_the_rows_of_their_encoder(variant: str, tmp_path: Path) -> None:
    loaded = bertsmith.load(_folder(tmp_path / "m", variant))
    texts = ["red bird", "a small green house"]
    vectors = loaded.encode(texts)
    model = load_model(tmp_path / "m").model
    for text, vector in zip(texts, vectors, strict=True):
        ids = torch.tensor(loaded.tokenizer.encode(text).ids.tolist())
        with torch.no_grad():
            rows = model(Inputs(ids, Layout.of([len(ids)]))).hidden
        torch.testing.assert_close(torch.from_numpy(vector), rows.mean(0), rtol=0, atol=1e-5)
