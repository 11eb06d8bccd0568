"""Folders give the same numbers here, in transformers and in sentence-transformers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tiny_models import randomized, shrunk
from torch import Tensor, nn

from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model, build
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.pooling import pool
from bertsmith.text.tokenizer import Tokenizer

sentence_transformers = pytest.importorskip("sentence_transformers")
warnings.filterwarnings("ignore", category=FutureWarning)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS), "字"]
TEXTS = ["a bad cab", "字 e", "hello world this is a longer text of letters", "z"]
# transformers 5 dropped NEZHA; its numbers are checked against the paper elsewhere.
THEIRS = ["bert", "roberta", "albert", "electra", "distilbert", "ernie"]
TOLERANCE = 1e-5


def tiny_tokenizer() -> Tokenizer:
    files = {"vocab.txt": "\n".join(WORDS), "tokenizer_config.json": '{"do_lower_case": true}'}
    return Tokenizer.from_files({name: text.encode() for name, text in files.items()})


def our_model(variant: str, heads: tuple[str, ...] = ()) -> Model:
    spec = shrunk(variant, vocab_size=len(WORDS), hidden=32, heads=4, rows=40)
    return randomized(build(variant, spec, heads=heads))


def our_hidden(model: Model, ids: list[list[int]]) -> list[Tensor]:
    layout = Layout.of([len(row) for row in ids])
    rows = torch.tensor([number for row in ids for number in row])
    with torch.inference_mode():
        hidden = model.encoder(Inputs(rows, layout)).hidden
    return list(hidden.split([len(row) for row in ids]))


def their_hidden(model: nn.Module, ids: list[list[int]]) -> list[Tensor]:
    with torch.inference_mode():
        return [model(input_ids=torch.tensor([row])).last_hidden_state[0] for row in ids]


def close(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(one).all()
        assert float((one - other).abs().max()) < TOLERANCE


IDS = [[2, 5, 6, 7, 3], [2, 8, 3], [2, *range(5, 30), 3]]


@pytest.mark.parametrize("variant", THEIRS)
def test_a_folder_written_here_gives_the_same_rows_in_transformers(
    variant: str, tmp_path: Path
) -> None:
    model = our_model(variant)
    save_model(model, tiny_tokenizer(), tmp_path / "m")
    theirs, state = transformers.AutoModel.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not state["missing_keys"]
    assert not state["unexpected_keys"]
    assert not state["mismatched_keys"]
    close(our_hidden(model, IDS), their_hidden(theirs.eval(), IDS))


@pytest.mark.parametrize("variant", THEIRS)
def test_masked_lm_logits_survive_the_way_to_transformers(variant: str, tmp_path: Path) -> None:
    model = our_model(variant, heads=("masked_lm",))
    save_model(model, tiny_tokenizer(), tmp_path / "m")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "m").eval()
    hidden = our_hidden(model, IDS)
    with torch.inference_mode():
        ours = [model.logits("masked_lm", rows) for rows in hidden]
        others = [theirs(input_ids=torch.tensor([row])).logits[0] for row in IDS]
    close(ours, others)


@pytest.mark.parametrize("variant", THEIRS)
@pytest.mark.parametrize("kind", ["encoder", "masked_lm", "sequence"])
def test_a_folder_of_transformers_gives_the_same_rows_here(
    variant: str, kind: str, tmp_path: Path
) -> None:
    config = transformers.AutoConfig.from_pretrained(_config_folder(variant, tmp_path))
    classes = {
        "encoder": transformers.AutoModel,
        "masked_lm": transformers.AutoModelForMaskedLM,
        "sequence": transformers.AutoModelForSequenceClassification,
    }
    theirs = randomized(classes[kind].from_config(config), seed=1)
    if kind == "masked_lm":
        theirs.tie_weights()
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert set(loaded.model.heads) == ({kind} if kind != "encoder" else set())
    inner = theirs if kind == "encoder" else theirs.base_model
    close(our_hidden(loaded.model, IDS), their_hidden(inner, IDS))


def _config_folder(variant: str, tmp_path: Path) -> Path:
    save_model(our_model(variant), None, tmp_path / "config")
    return tmp_path / "config"


@pytest.mark.parametrize("variant", THEIRS)
def test_a_sharded_folder_of_transformers_is_read(variant: str, tmp_path: Path) -> None:
    config = transformers.AutoConfig.from_pretrained(_config_folder(variant, tmp_path))
    theirs = randomized(transformers.AutoModel.from_config(config), seed=2)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="10KB")
    assert (tmp_path / "theirs" / "model.safetensors.index.json").exists()
    close(our_hidden(load_model(tmp_path / "theirs").model, IDS), their_hidden(theirs, IDS))


def vectors(loaded: LoadedFolder, texts: list[str]) -> np.ndarray:
    """Sentence vectors by the plain steps the settings name."""
    settings = loaded.sentence
    ids, _ = loaded.tokenizer.fast_ids(texts, settings.max_length)
    rows = our_hidden(loaded.model, [list(map(int, row)) for row in ids])
    lengths = [len(row) for row in rows]
    parts = [pool(kind, torch.cat(rows), lengths) for kind in settings.pooling]
    vector = torch.cat(parts, dim=-1)
    for layer in settings.dense:
        vector = torch.nn.functional.linear(vector, layer.weight, layer.bias)
        vector = {"tanh": torch.tanh, "identity": lambda x: x, "gelu": nn.functional.gelu}[
            layer.activation
        ](vector)
    if settings.normalize:
        vector = torch.nn.functional.normalize(vector, dim=-1)
    return vector.detach().numpy()


def dense(inputs: int, outputs: int, activation: str, bias: bool = True) -> DenseLayer:
    generator = torch.Generator().manual_seed(inputs + outputs)
    return DenseLayer(
        inputs=inputs,
        outputs=outputs,
        activation=activation,
        has_bias=bias,
        weight=torch.randn(outputs, inputs, generator=generator) * 0.2,
        bias=torch.randn(outputs, generator=generator) if bias else None,
    )


SETTINGS = {
    "mean": SentenceSettings(pooling=("mean",), normalize=True, max_length=20),
    "first": SentenceSettings(pooling=("first",)),
    "max": SentenceSettings(pooling=("max",), similarity="dot"),
    "mean_sqrt_len": SentenceSettings(pooling=("mean_sqrt_len",)),
    "weighted_mean": SentenceSettings(pooling=("weighted_mean",)),
    "last": SentenceSettings(pooling=("last",), similarity="euclidean"),
    "two": SentenceSettings(pooling=("first", "mean"), normalize=True),
    "two, other order": SentenceSettings(pooling=("mean", "first"), normalize=True),
    "dense": SentenceSettings(dense=(dense(32, 8, "tanh"),), normalize=True),
    "two dense": SentenceSettings(
        dense=(dense(32, 8, "gelu"), dense(8, 4, "identity", bias=False))
    ),
    "prompts": SentenceSettings(prompts={"query": "a b ", "passage": "c "}, default_prompt="query"),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_sentence_folder_goes_to_sentence_transformers_and_back(
    settings: SentenceSettings, tmp_path: Path
) -> None:
    model = our_model("bert")
    save_model(model, tiny_tokenizer(), tmp_path / "ours", sentence=settings)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    prompt = settings.prompts.get(settings.default_prompt or "", "")
    texts = [prompt + text for text in TEXTS]
    here = load_model(tmp_path / "ours")
    expected = theirs.encode(TEXTS)
    assert np.abs(vectors(here, texts) - expected).max() < TOLERANCE
    assert theirs.similarity_fn_name == here.sentence.similarity == settings.similarity
    theirs.save(str(tmp_path / "theirs"))
    again = load_model(tmp_path / "theirs")
    assert again.sentence.pooling == settings.pooling
    assert again.sentence.normalize == settings.normalize
    assert again.sentence.max_length == (settings.max_length or 40)
    assert again.sentence.default_prompt == settings.default_prompt
    assert np.abs(vectors(again, texts) - expected).max() < TOLERANCE


def test_the_real_minilm_gives_the_vectors_of_sentence_transformers(tmp_path: Path) -> None:
    from bertsmith.folders.resolve import resolve

    texts = ["The weather is lovely today.", "今天天气很好", "long " * 400]
    loaded = load_model("all-MiniLM-L6-v2")
    original = sentence_transformers.SentenceTransformer(
        str(resolve("all-MiniLM-L6-v2")), device="cpu"
    )
    expected = original.encode(texts)
    assert np.abs(vectors(loaded, texts) - expected).max() < TOLERANCE
    save_model(loaded.model, loaded.tokenizer, tmp_path / "m", sentence=loaded.sentence)
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert again.max_seq_length == 256
    assert np.abs(again.encode(texts) - expected).max() < TOLERANCE
