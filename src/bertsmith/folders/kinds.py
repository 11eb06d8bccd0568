"""What a folder is and what it can do: one table, asked by whoever opens, lists or refuses one.

A kind is known by the name of a manifest or by what `config.json` calls it; no weights are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import FolderError, check_type
from bertsmith.files.word_vectors.reading import VECTORS
from bertsmith.folders.extras import CORRECTION_KEY, LANGUAGE_MODEL, PAIRS_KEY, TASK_KEY, WRITES_KEY
from bertsmith.folders.opened import CONFIG, OpenFolder
from bertsmith.folders.sentence import MODULES
from bertsmith.folders.word_encoders.published_elmo import OPTIONS, WEIGHTS

if TYPE_CHECKING:
    from bertsmith.models.spec import Spec

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """Something a folder can do: `does` ends "it cannot ...", `wanted` says what to give instead.

    "{path}" in `wanted` stands for the folder that cannot.
    """

    does: str
    wanted: str


_TOKENS = "give a model of the BERT family here"
ABILITIES: dict[str, Ability] = {
    "tokenize": Ability(does="turn texts into tokens", wanted=_TOKENS),
    "embed": Ability(does="give vectors of texts", wanted=f"{_TOKENS}, or static vectors"),
    "encode": Ability(does="give the hidden states of tokens", wanted=_TOKENS),
    "fill": Ability(does="fill masks", wanted="give a model with a masked-LM head"),
    "score": Ability(does="score texts by their masks", wanted="give one with a masked-LM head"),
    "predict": Ability(
        does="predict",
        wanted="it was not fine-tuned: it has no head for a task; `bertsmith finetune DATA "
        "--model {path} --out DIR` makes a folder that has",
    ),
    "generate": Ability(
        does="write",
        wanted="take a folder that writes: a causal model (GPT, GPT-2), XLNet, BART, or one by "
        "`bertsmith finetune pairs.tsv --task write`",
    ),
    "write": Ability(
        does="be evaluated on pairs of source and target",
        wanted="`bertsmith finetune pairs.tsv --task write` makes a folder that can",
    ),
    "similar": Ability(
        does="write similar sentences: it was not trained to write similar sentences",
        wanted="`bertsmith finetune PAIRS --task similar` makes such a folder, and --among FILE "
        "finds sentences with any model",
    ),
    "correct": Ability(
        does="correct texts: it was not trained to correct texts",
        wanted="train one with `bertsmith finetune pairs.tsv --task correct`",
    ),
    "words": Ability(
        does="give vectors of words: it is no encoder of words",
        wanted="give a folder of ELMo, or word vectors; `bertsmith.load` opens other models",
    ),
    "lm": Ability(
        does="give probabilities of words",
        wanted="make a language model with: bertsmith lm train FILES --kind ngram --out DIR",
    ),
    "search": Ability(
        does="be searched: it is not an index", wanted="`bertsmith index build` makes one"
    ),
    "pretrain": Ability(
        does="be trained on: it is no corpus", wanted="`bertsmith corpus build` makes one"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderKind:
    """A kind of folder: what it `holds`, how it is found, what it can do, and what is done with it.

    `facts` are lines for `bertsmith info`, from the small files alone. "{path}" in `use` stands for
    the folder.
    """

    name: str
    holds: str
    finds: Callable[[OpenFolder], bool]
    abilities: Callable[[OpenFolder], frozenset[str]]
    use: str
    facts: Callable[[OpenFolder], Facts] = lambda folder: {}


def can(*names: str) -> Callable[[OpenFolder], frozenset[str]]:
    """Abilities that every folder of a kind has."""
    return lambda folder: frozenset(names)


def of_type(*names: str) -> Callable[[OpenFolder], bool]:
    """Folders whose config.json has one of these model types."""
    return lambda folder: folder.model_type in names


def of_format(file: str, name: str) -> Callable[[OpenFolder], bool]:
    """Folders with a manifest that names this format."""
    return lambda folder: folder.stored(file).get("format") == name


def with_files(*names: str) -> Callable[[OpenFolder], bool]:
    """Folders that have these files."""
    return lambda folder: all((folder.path / name).is_file() for name in names)


def model_abilities(spec: Spec, heads: Collection[str], own: Mapping[str, Any]) -> frozenset[str]:
    """What a model of tokens can do: by its shape, its heads, and what it was trained for here."""
    found = {"tokenize", "embed", "encode"}
    vocabulary = "masked_lm" in heads or "language_model" in heads
    if "masked_lm" in heads and not spec.causal:
        found |= {"fill", "score"}
    if vocabulary and (spec.form != "bidirectional" or WRITES_KEY in own):
        found.add("generate")
    if TASK_KEY in own or not {"sequence", "token", "span"}.isdisjoint(heads):
        found.add("predict")
    if CORRECTION_KEY in own:
        found.add("correct")
    if PAIRS_KEY in own:
        found.add("write")
        found |= {"similar"} if (own[PAIRS_KEY] or {}).get("task") == "similar" else set()
    if LANGUAGE_MODEL in own:
        found.add("lm")
    return frozenset(found)


def _model(folder: OpenFolder) -> frozenset[str]:
    """The same, by config.json and bertsmith.json alone."""
    from bertsmith.folders.read import read_folder

    return read_folder(folder).abilities


def _words(folder: OpenFolder) -> frozenset[str]:
    """An encoder of words may be fine-tuned, and ELMo be a language model, too."""
    found = {"words"}
    found |= {"predict"} if TASK_KEY in folder.own else set()
    return frozenset(found | ({"lm"} if folder.model_type == "elmo" else set()))


def _is_static(folder: OpenFolder) -> bool:
    return folder.root.has(MODULES) and folder.parts.static


def _config(*names: str) -> Callable[[OpenFolder], Facts]:
    """Some values of config.json, and of its settings."""

    def facts(folder: OpenFolder) -> Facts:
        config = folder.stored(CONFIG)
        settings = config.get("settings")
        every = {**(settings if isinstance(settings, dict) else {}), **config}
        return {
            name.replace("_", " "): every[name]
            for name in names
            if isinstance(every.get(name), str | int | float)
        }

    return facts


_WORDS = "an encoder of words (ELMo or word vectors)"
_USE_WORDS = (
    "it gives vectors of words (`bertsmith embed {path} FILE --words`, `bertsmith.load_words`) and "
    "features for tasks (`bertsmith finetune DATA --model {path}`, then `bertsmith predict`)"
)
_USE_LM = "`bertsmith lm` scores and writes with it, `bertsmith.open_lm` opens it"
MODEL = FolderKind(
    name="model",
    holds="a model of the BERT family",
    finds=lambda folder: folder.root.has(CONFIG) or folder.root.has(MODULES),
    abilities=_model,
    use="`bertsmith.load` opens it",
)
STATIC = FolderKind(
    name="static",
    holds="static vectors, one per token, and no encoder",
    finds=_is_static,
    abilities=can("tokenize", "embed"),
    use="use it to embed and to search, and give the model it was made from for the rest",
)
WORD_FILE = FolderKind(
    name="word-vector-file",
    holds="word vectors in a file",
    finds=lambda folder: False,
    abilities=can("words"),
    use=_USE_WORDS,
)


def _encoder_of_words(name: str, finds: Callable[[OpenFolder], bool]) -> FolderKind:
    return FolderKind(
        name=name,
        holds=_WORDS,
        finds=finds,
        abilities=_words,
        use=_USE_WORDS,
        facts=_config("dim", "width", "vocab_size", "algorithm"),
    )


def _language_model(name: str) -> FolderKind:
    return FolderKind(
        name=name,
        holds=f"a language model of words ({name})",
        finds=of_type(name),
        abilities=can("lm"),
        use=_USE_LM,
        facts=_config("order", "vocab_size", "hidden", "layers"),
    )


_TABLE = (
    FolderKind(
        name="index",
        holds="a search index",
        finds=with_files("index.json"),
        abilities=can("search"),
        use="`bertsmith search {path} TEXT` searches it, `bertsmith.Index.open` opens it",
    ),
    FolderKind(
        name="corpus",
        holds="a corpus for pre-training",
        finds=of_format("manifest.json", "bertsmith corpus"),
        abilities=can("pretrain"),
        use="`bertsmith pretrain` reads it (run.corpus)",
    ),
    FolderKind(
        name="word-stream",
        holds="the words of texts as one stream",
        finds=of_format("words.json", "bertsmith words"),
        abilities=can(),
        use="`bertsmith lm train` and `bertsmith words train` read it",
    ),
    _encoder_of_words("elmo-published", with_files(OPTIONS, WEIGHTS)),
    _encoder_of_words("word-vectors", with_files(VECTORS)),
    _encoder_of_words("elmo", of_type("elmo")),
    _encoder_of_words("elmo-encoder", of_type("elmo-encoder")),
    _encoder_of_words("word-table", of_type("word-vectors")),
    *(_language_model(name) for name in ("ngram", "nnlm", "lstm", "gru")),
    STATIC,
    MODEL,
)
KINDS: dict[str, FolderKind] = {kind.name: kind for kind in _TABLE}  # the first that finds


def found_kind(folder: OpenFolder) -> FolderKind | None:
    """The first kind that finds its files in a folder."""
    return next((kind for kind in KINDS.values() if kind.finds(folder)), None)


def folder_kind(folder: OpenFolder) -> FolderKind:
    """The kind of a folder; one that is of none is refused."""
    kind = found_kind(folder)
    if kind is None:
        raise folder.nothing()
    return kind


def kind_if_any(path: Path) -> FolderKind | None:
    """The kind of the folder at a path; None where there is none."""
    return found_kind(OpenFolder.at(path)) if path.is_dir() else None


def kind_at(name: str | Path | OpenFolder) -> tuple[FolderKind, Path | OpenFolder]:
    """What lies at a path or name: the kind, and the folder; a file is one of word vectors."""
    if isinstance(name, OpenFolder):
        return folder_kind(name), name
    check_type("a model", name, str, Path)
    path: Path | None
    try:
        path = Path(name).expanduser()
        path = path if path.is_file() else None
    except (OSError, ValueError):
        path = None  # a name longer than a path can be is no path
    if path is not None:
        return WORD_FILE, path
    folder = OpenFolder.at(name)
    return folder_kind(folder), folder


def abilities_at(name: str | Path | OpenFolder) -> frozenset[str]:
    """What can be done with what lies at a path or name; weights are not read."""
    kind, place = kind_at(name)
    return frozenset({"words"}) if isinstance(place, Path) else kind.abilities(place)


def refusal(path: object, kind: FolderKind, ability: str) -> FolderError:
    """Why a folder cannot do what is asked of it, and what to give instead."""
    asked = ABILITIES[ability]
    return FolderError(
        f"{path} holds {kind.holds}, which cannot {asked.does}: {kind.use}; {asked.wanted}".replace(
            "{path}", str(path)
        )
    )


def refuse_kind(path: Path, ability: str) -> None:
    """Refuse what lies at a path if it is of a kind without an ability; nothing is no kind."""
    kind = kind_if_any(path)
    if kind is not None and ability not in kind.abilities(OpenFolder.at(path)):
        raise refusal(path, kind, ability)


def need(folder: OpenFolder, ability: str) -> FolderKind:
    """The kind of a folder with an ability; any other folder is refused."""
    kind = folder_kind(folder)
    if ability not in kind.abilities(folder):
        raise refusal(folder.path, kind, ability)
    return kind
