"""How a model folder writes text: generation_config.json, and `writes` of bertsmith.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from bertsmith.config import Settings, validated
from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import WRITES_KEY, Extras, read_extras
from bertsmith.folders.opened import OWN

if TYPE_CHECKING:
    from bertsmith.folders.read import ModelFolder
    from bertsmith.text.tokenizer import Tokenizer

GENERATION_CONFIG = "generation_config.json"
Stop = Literal["early", "likely", "never"]
By = Literal["mask", "shift"]

# What logits are divided by: beyond these bounds all or none of them become infinite.
LEAST_FACTOR, MOST_FACTOR = 1e-4, 1e4
FACTORS = "a number from 0.0001 to 10,000"
_COUNT = Field(default=None, ge=1, le=1_000_000)
_AT_LEAST = Field(default=None, ge=0, le=1_000_000)


class Writes(Settings):
    """How a bidirectional model was trained to write; a causal model or a decoder needs no such.

    `by` "mask": the next token is predicted at a [MASK] after the written ones (UniLM); "shift":
    each row predicts the token after it (SimBERT). A model trained one way cannot write the other
    way. The segments are those of the source and of the written text.
    """

    by: By
    source_segment: int = Field(default=0, ge=0)
    target_segment: int = Field(default=1, ge=0)


class GenerationDefaults(Settings):
    """What a folder says of writing: control tokens, and values where no option is given.

    None means that the folder does not say. `max_length` and `min_length` count the prompt, or the
    start token of a decoder, as transformers does.
    """

    start: int | None = Field(default=None, ge=0)  # the first token that a decoder reads
    ends: tuple[int, ...] = Field(default=(), max_length=1_000)
    bos: int | None = Field(default=None, ge=0)
    pad: int | None = Field(default=None, ge=0)
    first: int | None = Field(default=None, ge=0)
    last: int | None = Field(default=None, ge=0)
    suppressed: tuple[int, ...] = Field(default=(), max_length=100_000)
    first_suppressed: tuple[int, ...] = Field(default=(), max_length=100_000)
    forbidden: tuple[tuple[int, ...], ...] = Field(default=(), max_length=100_000)
    max_length: int | None = _COUNT
    max_new: int | None = _COUNT
    min_length: int | None = _AT_LEAST
    min_new: int | None = _AT_LEAST
    beams: int | None = Field(default=None, ge=1, le=1_000)
    length_penalty: float | None = Field(default=None, ge=-100, le=100)
    stop: Stop | None = None
    sample: bool | None = None
    temperature: float | None = Field(default=None, ge=LEAST_FACTOR, le=MOST_FACTOR)
    top_k: int | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    no_repeat: int | None = Field(default=None, ge=0)
    repetition_penalty: float | None = Field(default=None, ge=LEAST_FACTOR, le=MOST_FACTOR)
    answers: int | None = Field(default=None, ge=1, le=1_000)

    def check_ids(self, vocab_size: int, place: str) -> Self:
        """These settings, if every token id is one of the vocabulary."""
        single = [("start", self.start), ("bos", self.bos), ("first", self.first)]
        single += [("last", self.last)]
        several = [("ends", self.ends), ("suppressed", self.suppressed)]
        several += [("first_suppressed", self.first_suppressed)]
        several += [("forbidden", tuple(one for word in self.forbidden for one in word))]
        several += [(name, () if one is None else (one,)) for name, one in single]
        for name, ids in several:
            for number in ids:
                if not 0 <= number < vocab_size:
                    raise FolderError(
                        f"{place}: {_PUBLISHED[name]} names the id {number}, and the vocabulary "
                        f"has {vocab_size:,}; correct the id"
                    )
        return self

    def to_json(self) -> dict[str, Any]:
        """As generation_config.json has it; what the folder does not say is left out."""
        values: dict[str, Any] = {}
        for name, value in self.model_dump(mode="json").items():
            if value is not None and value != []:
                values[_PUBLISHED[name]] = value
        if "early_stopping" in values:
            values["early_stopping"] = _STOPS_PUBLISHED[values["early_stopping"]]
        if len(self.ends) == 1:
            values["eos_token_id"] = self.ends[0]
        return values


# Ours -> transformers'.
_PUBLISHED = {
    "start": "decoder_start_token_id",
    "ends": "eos_token_id",
    "bos": "bos_token_id",
    "pad": "pad_token_id",
    "first": "forced_bos_token_id",
    "last": "forced_eos_token_id",
    "suppressed": "suppress_tokens",
    "first_suppressed": "begin_suppress_tokens",
    "forbidden": "bad_words_ids",
    "max_length": "max_length",
    "max_new": "max_new_tokens",
    "min_length": "min_length",
    "min_new": "min_new_tokens",
    "beams": "num_beams",
    "length_penalty": "length_penalty",
    "stop": "early_stopping",
    "sample": "do_sample",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "no_repeat": "no_repeat_ngram_size",
    "repetition_penalty": "repetition_penalty",
    "answers": "num_return_sequences",
}
_OURS = {published: ours for ours, published in _PUBLISHED.items()}
_STOPS: dict[object, Stop] = {True: "early", False: "likely", "never": "never"}
_STOPS_PUBLISHED: dict[Stop, object] = {"early": True, "likely": False, "never": "never"}
_IDS = ("start", "ends", "bos", "pad", "first", "last")
# Keys that change what is written unless they hold one of these values.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "assistant_confidence_threshold": (0.4,),
    "cache_implementation": (),
    "constraints": (),
    "diversity_penalty": (0.0,),
    "dola_layers": (),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1.0,),
    "epsilon_cutoff": (0.0,),
    "eta_cutoff": (0.0,),
    "exponential_decay_length_penalty": (),
    "force_words_ids": (),
    "forced_decoder_ids": (),
    "guidance_scale": (1.0,),
    "min_p": (0.0,),
    "num_beam_groups": (1,),
    "penalty_alpha": (0.0,),
    "prompt_lookup_num_tokens": (),
    "renormalize_logits": (False,),
    "sequence_bias": (),
    "stop_strings": (),
    "top_h": (),
    "typical_p": (1.0,),
    "watermarking_config": (),
}


def decoder_start(folder: Folder) -> int | None:
    """The first token that a decoder reads, as generation_config.json has it; None: not there.

    This is the one that texts are written from, so `read_folder` puts it into the spec: training,
    evaluation and `generate` all read it there.
    """
    if not folder.has(GENERATION_CONFIG):
        return None
    found = folder.json_object(GENERATION_CONFIG).get(_PUBLISHED["start"])
    return found if type(found) is int else None


def read_writes(folder: Folder) -> Writes | None:
    """How a bidirectional model was trained to write; None if bertsmith.json does not say."""
    section = (folder.json_object(OWN) if folder.has(OWN) else {}).get(WRITES_KEY)
    if section is None:
        return None
    try:
        return validated(Writes, section, f"{folder.path / OWN}: {WRITES_KEY}")
    except ConfigError as fault:
        raise FolderError(str(fault)) from fault


def read_generation(folder: ModelFolder) -> GenerationDefaults:
    """What generation_config.json says, or the same keys of config.json in folders without one.

    Control tokens that generation_config.json does not name are those of config.json.
    """
    home = folder.parts.transformer
    old = {key: value for key, value in folder.config.items() if key in _OURS}
    values = _ours(old, f"{home.path / 'config.json'}")
    place = "config.json"
    if home.has(GENERATION_CONFIG):
        place = GENERATION_CONFIG
        ids = {name: value for name, value in values.items() if name in _IDS}
        published = home.json_object(GENERATION_CONFIG)
        values = ids | _ours(published, f"{home.path / GENERATION_CONFIG}")
    where = f"{home.path / place}"
    try:
        defaults = validated(GenerationDefaults, values, where)
    except ConfigError as fault:
        raise FolderError(_with_published_names(str(fault), where)) from fault
    return defaults.check_ids(folder.spec.vocab_size, where)


def _ours(published: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Keys of transformers by our names; a key that would be ignored at a price is refused."""
    for key, neutral in _NEUTRAL.items():
        value = published.get(key)
        if value is not None and not any(value == one for one in neutral):
            raise FolderError(
                f"{place}: {key} is {value!r:.60}, which changes what is written and is not "
                "supported; remove the key to write without it"
            )
    values = {
        _OURS[key]: value for key, value in published.items() if key in _OURS and value is not None
    }
    if type(values.get("ends")) is int:
        values["ends"] = [values["ends"]]
    if "stop" in values:
        if not isinstance(values["stop"], bool | str) or values["stop"] not in _STOPS:
            raise FolderError(
                f"{place}: early_stopping is {values['stop']!r:.60}; it must be true, false or "
                '"never"'
            )
        values["stop"] = _STOPS[values["stop"]]
    for name in ("temperature", "top_p", "length_penalty", "repetition_penalty"):
        if type(values.get(name)) is int and abs(values[name]) < 2**53:
            values[name] = float(values[name])
    return values


def _with_published_names(message: str, where: str) -> str:
    """A message about our names, with the names that the file has."""
    lines = []
    for line in message.splitlines():
        rest = line.removeprefix(f"{where}: ")
        name = rest.split(" ", 1)[0].split(".", 1)[0]
        lines.append(f"{where}: {rest.replace(name, _PUBLISHED.get(name, name), 1)}")
    return "\n".join(lines)


def fresh_defaults(tokenizer: Tokenizer, *, decoder: bool) -> GenerationDefaults:
    """The control tokens of a newly trained model: text ends with the tokenizer's last one.

    A decoder starts with the end token, as BART's does.
    """
    end = tokenizer.end_id
    return GenerationDefaults(
        start=end if decoder else None,
        ends=() if end is None else (end,),
        bos=tokenizer.special.cls,
        pad=tokenizer.special.pad,
    )


def generation_extras(
    defaults: GenerationDefaults | None = None, writes: Writes | None = None
) -> Extras:
    """What a folder of a model that writes has in addition to others."""
    return Extras(
        json={} if writes is None else {WRITES_KEY: writes.model_dump(mode="json")},
        files={} if defaults is None else {GENERATION_CONFIG: defaults.to_json()},
    )


def all_extras(folder: ModelFolder) -> Extras:
    """Everything that a folder holds in addition to a published model, to be written again."""
    home = folder.parts.transformer
    writes = read_writes(home)
    alone = folder.spec.form in ("decoder", "causal")
    if writes is None and not alone and not home.has(GENERATION_CONFIG):
        return read_extras(home)
    return read_extras(home) | generation_extras(read_generation(folder), writes)
