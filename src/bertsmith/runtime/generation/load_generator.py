"""The generator of a model that was loaded from a folder."""

from __future__ import annotations

from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.generation import (
    By,
    Writes,
    read_generation,
    read_writes,
)
from bertsmith.folders.read import ModelFolder
from bertsmith.runtime.generation.cached import writer_of
from bertsmith.runtime.generation.forms import CausalForm, CrossForm, Form, PrefixForm, QueryForm
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.host import Host


def generator_of(host: Host, folder: ModelFolder, by: By | None = None) -> TextGenerator:
    """The generator of a folder: by its decoder, its causal encoder, or as it was trained to write.

    `by` is for bidirectional models whose folder does not say how they write.
    """
    try:
        host.model.vocabulary_head  # noqa: B018 - raises where there is none
    except ConfigError as fault:
        raise FolderError(f"{folder.path} cannot write: {fault}; {_ADVICE}") from fault
    defaults = read_generation(folder)
    if not defaults.ends:
        end = host.tokenizer.end_id
        defaults = defaults.model_copy(update={"ends": () if end is None else (end,)})
    form = _form(host, folder, by)
    spec = host.model.spec
    layers = spec.layers if spec.decoder is None else spec.decoder.layers
    return TextGenerator(
        writer_of(host.model, form),
        host.tokenizer,
        defaults,
        continues=isinstance(form, CausalForm),
        turn=host.torch_turn,
        token_bytes=2 * layers * spec.hidden * 4,  # a key and a value per layer, float32
    )


_ADVICE = (
    "take a folder that writes: a causal model (GPT, GPT-2), XLNet, BART, or one by `bertsmith "
    "finetune pairs.tsv --task write`"
)


_PARTS = {"decoder": "decoder", "queries": "query stream", "causal": "causal encoder"}


def _form(host: Host, folder: ModelFolder, by: By | None) -> Form:
    spec = host.model.spec
    if by is not None and spec.form in _PARTS:
        raise ConfigError(
            f"by (--by) is {by!r}, and {folder.path} has a {_PARTS[spec.form]}, which writes in "
            "one way only; leave the option out"
        )
    if spec.decoder is not None:
        return CrossForm(spec.decoder.start)
    if spec.form == "queries":
        return QueryForm()
    return CausalForm() if spec.causal else _prefix(host, folder, by)


def _prefix(host: Host, folder: ModelFolder, by: By | None) -> PrefixForm:
    writes = read_writes(folder.parts.transformer)
    if writes is None and by is None:
        raise FolderError(
            f"{folder.path} was not trained to write: it is a bidirectional masked LM, and its "
            f"bertsmith.json has no `writes`; {_ADVICE}. A model that other software has trained "
            "to write needs --by mask (UniLM) or --by shift (SimBERT)"
        )
    if writes is not None and by is not None and by != writes.by:
        raise ConfigError(
            f"by (--by) is {by!r}, and {folder.path} was trained to write by {writes.by!r}: a "
            "model trained one way cannot write the other way; leave the option out"
        )
    if writes is None:
        writes = Writes(by="mask" if by is None else by)
    rows = host.model.spec.segments
    for name in ("source_segment", "target_segment"):
        if rows and getattr(writes, name) >= rows:
            raise FolderError(
                f"{folder.path}: {name} of `writes` is {getattr(writes, name)}, and the model has "
                f"{rows} segments; correct bertsmith.json"
            )
    return PrefixForm(
        by=writes.by,
        source_segment=writes.source_segment,
        target_segment=writes.target_segment,
        mask_id=host.tokenizer.special.mask,
    )
