"""Reading encoders of words: ELMo, published or trained here, and files of word vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.config import validated
from bertsmith.errors import FolderError
from bertsmith.files.folder_hashes import verified
from bertsmith.files.safe_folder import Folder
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.folders.kinds import kind_at, refusal
from bertsmith.folders.opened import CONFIG, OpenFolder
from bertsmith.folders.tensors import open_weights
from bertsmith.folders.word_encoders.published_elmo import read_published
from bertsmith.models.word_encoders.elmo_spec import ElmoSpec
from bertsmith.text.segment import is_chinese
from bertsmith.text.whole_words.rule import WordRule
from bertsmith.text.whole_words.tokenizer import (
    KnownWords,
    SpelledWords,
    WordTokenizer,
    read_rule,
    read_words,
)

if TYPE_CHECKING:
    import torch

    from bertsmith.models.word_encoders.word_model import WordModel

ELMO_LM = "elmo"  # a folder of `bertsmith lm train`: two language models over the encoder
ELMO, TABLE = "elmo-encoder", "word-vectors"  # the encoder of a fine-tuned folder
NETWORK = "network."  # names of the encoder's tensors in a folder of language models
JIEBA = "jieba"
WIDEST = 1 << 20  # columns of a table of vectors
SEGMENTED = 0.02  # the share of Chinese words of several characters that shows a segmenter


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFolder:
    """An encoder of words in memory, where it came from, and what turns texts into its words."""

    path: Path
    kind: str  # "ELMo" or "word vectors"
    model: WordModel
    tokenizer: WordTokenizer


def load_word_folder(name: str | Path | OpenFolder, *, device: str = "cpu") -> WordFolder:
    """An encoder of words by its path; sizes are checked before memory is taken."""
    kind, place = kind_at(name)
    if kind.name not in _SOURCES:
        raise refusal(name, kind, "words")
    if isinstance(place, Path):
        return _SOURCES[kind.name](place, device)
    with verified(place.root):
        return _SOURCES[kind.name](place.path, device)


def _from_vectors(path: Path, device: str) -> WordFolder:
    """Word vectors of a file, or of a folder of `bertsmith words train`."""
    import torch

    from bertsmith.models.word_encoders.word_model import TableEncoder, WordModel

    words, matrix = read_word_vectors(path)
    rule = usual_rule(words)
    if path.is_dir():
        rule = read_rule(Folder.at(path), rule)
    with torch.device("meta"):
        encoder = TableEncoder(len(words), matrix.shape[1])
    encoder.table.weight = torch.nn.Parameter(
        torch.cat([torch.zeros(1, matrix.shape[1]), torch.from_numpy(matrix)])
    )
    return WordFolder(
        path=path,
        kind="word vectors",
        model=WordModel(encoder).to(device).eval(),
        tokenizer=KnownWords(rule, words),
    )


def usual_rule(words: list[str]) -> WordRule:
    """How a text is split where nothing says how the text behind the vectors was."""
    lower = not any(word != word.lower() for word in words)
    chinese = [word for word in words if word and is_chinese(word[0])]
    several = sum(len(word) > 1 for word in chinese)
    segmented = chinese and several > SEGMENTED * len(chinese)
    return WordRule(lower=lower, segmenter=JIEBA if segmented else "character")


def _from_published(path: Path, device: str) -> WordFolder:
    from bertsmith.models.word_encoders.word_model import ElmoEncoder, WordModel

    network = read_published(path)
    rule = read_rule(Folder.at(path), WordRule(segmenter=JIEBA))
    return WordFolder(
        path=path,
        kind="ELMo",
        model=WordModel(ElmoEncoder(network)).to(device).eval(),
        tokenizer=SpelledWords(rule, network.spec.length),
    )


def _from_elmo(path: Path, device: str) -> WordFolder:
    """The encoder of a folder of language models, or the one of a fine-tuned folder."""
    import torch

    from bertsmith.models.word_encoders.elmo_network import ElmoNetwork
    from bertsmith.models.word_encoders.word_model import ElmoEncoder, WordModel

    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    where = str(folder.path / CONFIG)
    language_model = config.get("model_type") == ELMO_LM
    settings = config.get("settings") if language_model else {"model": config.get("shape")}
    shape = settings.get("model", {}) if isinstance(settings, dict) else None
    if not isinstance(shape, dict):
        raise FolderError(f"{where} has no shape of the model; copy it from where it was")
    spec = validated(ElmoSpec, shape, f"{where}, the shape of the model")
    with torch.device("meta"):
        network = ElmoNetwork(spec)
    prefix = NETWORK if language_model else ""
    stored = _tensors(folder, network, prefix, more=language_model)
    network = ElmoNetwork(spec)
    network.load_state_dict(stored)
    return WordFolder(
        path=path,
        kind="ELMo",
        model=WordModel(ElmoEncoder(network)).to(device).eval(),
        tokenizer=SpelledWords(read_rule(folder, WordRule()), spec.length),
    )


def _tensors(
    folder: Folder, module: torch.nn.Module, prefix: str, *, more: bool = False
) -> dict[str, torch.Tensor]:
    """The tensors of a module by name; with `more`, others may stand next to them."""
    import torch

    from bertsmith.folders.load_weights import read_exactly

    with open_weights(folder) as weights:
        shapes = {f"{prefix}{n}": tuple(t.shape) for n, t in module.state_dict().items()}
        if more:
            others = {n: weights.shapes[n] for n in weights.stored if not n.startswith(prefix)}
            shapes |= others
        stored = read_exactly(weights, shapes, device="cpu", dtype=torch.float32)
    return {n.removeprefix(prefix): t for n, t in stored.items() if n.startswith(prefix)}


def _from_table(path: Path, device: str) -> WordFolder:
    """The word vectors of a fine-tuned folder."""
    import torch

    from bertsmith.models.word_encoders.word_model import TableEncoder, WordModel

    folder = Folder.at(path)
    config = folder.json_object(CONFIG)
    words, width = read_words(folder), config.get("width")
    if type(width) is not int or not 1 <= width <= WIDEST or config.get("vocab_size") != len(words):
        raise FolderError(
            f"{folder.path / CONFIG}: width and vocab_size must be those of the {len(words):,} "
            "words of words.txt; copy both files from one folder"
        )
    with torch.device("meta"):
        encoder = TableEncoder(len(words), width)
    stored = _tensors(folder, encoder, "")
    encoder.table.weight = torch.nn.Parameter(stored["table.weight"])
    return WordFolder(
        path=path,
        kind="word vectors",
        model=WordModel(encoder).to(device).eval(),
        tokenizer=KnownWords(read_rule(folder, WordRule()), words),
    )


_SOURCES: dict[str, Callable[[Path, str], WordFolder]] = {  # by the kind of folder
    "word-vector-file": _from_vectors,
    "elmo-published": _from_published,
    "word-vectors": _from_vectors,
    "elmo": _from_elmo,
    "elmo-encoder": _from_elmo,
    "word-table": _from_table,
}


def word_config(model: WordModel, tokenizer: WordTokenizer) -> dict[str, Any]:
    """config.json of an encoder of words that is saved by itself."""
    from bertsmith.models.word_encoders.word_model import ElmoEncoder

    if isinstance(model.encoder, ElmoEncoder):
        shape = model.encoder.network.spec.model_dump(mode="json")
        return {"model_type": ELMO, "shape": shape}
    return {
        "model_type": TABLE,
        "width": model.spec.hidden,
        "vocab_size": tokenizer.vocab_size - 1,
    }
