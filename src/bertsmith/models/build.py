"""From a spec to modules: which parts make which model, initialized as published or left empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError, unknown
from bertsmith.models.positions import SegmentRecurrent
from bertsmith.models.spec import Spec
from bertsmith.models.text_model import TextModel
from bertsmith.models.variant import Head, Variant
from bertsmith.models.variants import find
from bertsmith.nn.attention import Attention
from bertsmith.nn.block import Block, DecoderBlock
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.decoder import Decoder
from bertsmith.nn.embeddings import Embeddings, embedding_table
from bertsmith.nn.encoder import Encoded, Encoder, Want
from bertsmith.nn.feed_forward import FeedForward
from bertsmith.nn.heads import Classifier, VocabularyHead
from bertsmith.nn.inputs import SEGMENTS, TASKS, Inputs
from bertsmith.nn.layout import FULL, Layout, Sees
from bertsmith.nn.relative.attention import RelativeAttention
from bertsmith.nn.relative.encoder import RelativeEncoder

INIT_STD = 0.02  # Devlin et al. 2018


class Model(TextModel):
    """An encoder, for some models a decoder that shares its token embedding, and heads."""

    spec: Spec
    encoder: Encoder
    decoder: Decoder | None

    def __init__(
        self,
        variant: str | Variant,
        spec: Spec,
        encoder: Encoder,
        heads: Sequence[Head],
        *,
        decoder: Decoder | None = None,
    ) -> None:
        super().__init__()
        self.variant = find(variant)
        self.spec = spec
        self.head_specs = tuple(heads)
        self.encoder = encoder
        self.decoder = decoder
        self.heads = nn.ModuleDict(
            {head.kind: build_head(self.variant, spec, head) for head in heads}
        )

    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
        head_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Encoded:
        """The encoder's rows: T rows of inputs -> Encoded.

        Tokenizers number the texts of a pair for every model; one without segments of its own
        ignores them. Where `spec.sees` is "before", a layout that sees everything is causal. With a
        `cache` the rows continue the texts in it.
        """
        if not self.spec.reads_segments:
            inputs = inputs.without(SEGMENTS)
        encoded: Encoded = self.encoder(
            inputs, rows=rows, want=want, head_mask=head_mask, cache=cache
        )
        return encoded

    def decode(
        self,
        inputs: Inputs,
        memory: Tensor | None,
        memory_layout: Layout | None,
        *,
        rows: Tensor | None = None,
        sees_memory: Sees = FULL,
        cache: Cache | None = None,
    ) -> Tensor:
        """The decoder's rows of B target texts: T rows of inputs -> (T, D), of `rows` (P, D).

        `memory` (S, D) holds the encoder's rows of the B source texts, which a `cache` knows after
        the first pass; text b looks at text b of them as `sees_memory` says.
        """
        if self.decoder is None:
            raise ConfigError(f"this {self.variant.name} model has no decoder")
        hidden: Tensor = self.decoder(
            inputs.without(SEGMENTS), memory, memory_layout, sees_memory=sees_memory, cache=cache
        )
        return hidden if rows is None else hidden.index_select(0, rows)

    @property
    def vocabulary_head(self) -> VocabularyHead:
        """The head over the vocabulary: masked_lm or language_model."""
        for kind in ("masked_lm", "language_model"):
            if kind in self.heads and isinstance(self.heads[kind], VocabularyHead):
                return self.heads[kind]  # type: ignore[return-value]
        raise ConfigError(
            "this model has no head over the vocabulary (masked_lm or language_model); it has "
            f"{', '.join(self.heads) or 'none at all'}"
        )

    def logits(self, kind: str, rows: Tensor) -> Tensor:
        """What a head says of hidden rows: (P, D) -> (P, C), (P, V) or, replaced token, (P,).

        Heads on whole texts expect the rows of `text_rows`.
        """
        if kind not in self.heads:
            raise unknown("head of this model", kind, self.heads)
        if self.reads(kind) == "pooled":
            rows = self.encoder.pool(rows)
        head = self.heads[kind]
        if self.reads_tokens(kind):
            return head(rows, self.encoder.embeddings.tokens.weight)  # type: ignore[no-any-return]
        return head(rows)  # type: ignore[no-any-return]

    def reads(self, kind: str) -> str:
        """What a head reads: any "rows", or one row per text (see `HeadSpec`)."""
        return self.variant.heads[kind].reads

    def reads_tokens(self, kind: str) -> bool:
        """Whether a head multiplies by the token embedding."""
        return self.variant.heads[kind].reads_tokens

    def text_places(self, kind: str, layout: Layout) -> Tensor:
        """Where the row of each text is that a head on whole texts reads: (B,)."""
        starts = torch.tensor(layout.starts, dtype=torch.long, device=layout.positions.device)
        if self.reads(kind) in ("first", "pooled"):
            return starts
        return starts + torch.tensor(layout.lengths, device=starts.device) - 1

    def text_rows(self, kind: str, inputs: Inputs, hidden: Tensor | None = None) -> Tensor:
        """The row of each text that a head on whole texts reads: T rows of inputs -> (B, D).

        `hidden` (T, D) are the encoder's rows, where they are known already.
        """
        layout = inputs.layout
        rows = self.text_places(kind, layout)
        if self.reads(kind) == "decoded" and self.spec.decoder is not None:
            memory = self(inputs).hidden if hidden is None else hidden
            starts = torch.tensor(layout.starts, dtype=torch.long, device=rows.device)
            shifted = inputs.ids.roll(1).index_fill(0, starts, self.spec.decoder.start)
            target = Inputs(shifted, Layout(layout.lengths, layout.positions))
            return self.decode(target, memory, layout, rows=rows)
        if hidden is not None:
            return hidden.index_select(0, rows)
        return self(inputs, rows=rows).hidden  # type: ignore[no-any-return]


def build(
    variant: str | Variant,
    spec: Spec,
    *,
    heads: Sequence[str | Head] = (),
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    empty: bool = False,
) -> Model:
    """Build a model of a variant, given by name or as an object.

    Weights are normal(0, 0.02) or, `empty`, memory that is still to be filled. On the device
    "meta" nothing is allocated at all.
    """
    variant = find(variant)
    settings = _settings(variant, spec, heads)
    with torch.device("meta"):
        encoder = _encoder(spec)
        decoder = _decoder(spec, encoder.embeddings.tokens)
        model = Model(variant, spec, encoder, settings, decoder=decoder).to(dtype)
    if torch.device(device).type == "meta":
        return model
    if empty:
        return model.to_empty(device=device)
    model.to_empty(device="cpu")
    initialize(model, generator)
    return model.to(device)


def with_heads(model: Model, heads: Sequence[Head]) -> Model:
    """The same model under other heads, which are still empty, on the device "meta"."""
    settings = _settings(model.variant, model.spec, heads)
    dtype = next(model.parameters()).dtype
    with torch.device("meta"):
        parts = (model.variant, model.spec, model.encoder, settings)
        return Model(*parts, decoder=model.decoder).to(dtype)


def initialize(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """Fill weights as published: matrices normal(0, 0.02), biases 0, norms 1."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, INIT_STD, generator=generator)
            else:
                parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)


def _settings(variant: Variant, spec: Spec, heads: Sequence[str | Head]) -> list[Head]:
    settings = [_setting(head, variant) for head in heads]
    for head in settings:
        if variant.heads[head.kind].reads == "pooled" and not spec.pooler:
            raise ConfigError(
                f"the {head.kind} head of {variant.name} needs a pooler, the spec has none"
            )
    if len({head.kind for head in settings}) < len(settings):
        raise ConfigError(f"a head is named twice: {[head.kind for head in settings]}")
    return settings


def _setting(head: str | Head, variant: Variant) -> Head:
    setting = head if isinstance(head, Head) else Head(kind=head)
    if setting.kind not in variant.heads:
        raise unknown("head", setting.kind, variant.heads)
    return setting


def _encoder(spec: Spec) -> Encoder:
    if isinstance(spec.positions, SegmentRecurrent):
        return _relative_encoder(spec, spec.positions)
    positions = spec.positions.attention()
    widths = {shape.head_width for shape in spec.layer_shapes}
    if positions is not None and len(widths) > 1:
        raise ConfigError(
            f"{spec.positions.kind} positions are inside attention and need heads of one width in "
            f"all layers, not {', '.join(map(str, sorted(widths)))}"
        )
    pooler = nn.Linear(spec.hidden, spec.hidden) if spec.pooler else None
    tasks = {TASKS: spec.tasks} if spec.tasks else {}
    channels = {SEGMENTS: spec.segments, **tasks, **dict(spec.channels)}
    return Encoder(
        _embeddings(spec, embedding_table(spec.vocab_size, spec.embedding), channels),
        _blocks(spec),
        pooler=pooler,
        positions=positions,
        norm=_norm(spec) if spec.norm == "before" else None,
        causal=spec.sees == "before",
    )


def _relative_encoder(spec: Spec, positions: SegmentRecurrent) -> Encoder:
    """XLNet's encoder: attention reads segments, so the embedding does not."""
    if spec.pooler or spec.norm != "after" or spec.embedding != spec.hidden:
        raise ConfigError(
            "relative attention with two streams is built without a pooler, with norms after its "
            "parts and with embeddings as wide as its rows"
        )
    tokens = embedding_table(spec.vocab_size, spec.embedding)
    parts = _embeddings(spec, tokens, dict(spec.channels)), _blocks(spec)
    causal = spec.sees == "before"
    return RelativeEncoder(*parts, positions=positions.attention(), causal=causal)


def _decoder(spec: Spec, tokens: nn.Embedding) -> Decoder | None:
    """The decoder, if the spec has one; its positions are a table of their own."""
    if spec.decoder is None:
        return None
    shape = replace(
        spec,
        layers=spec.decoder.layers,
        heads=spec.decoder.heads,
        feed_forward=spec.decoder.feed_forward,
        shapes=(),
        sharing="none",
    )
    blocks = [
        DecoderBlock(
            block,
            Attention(shape.hidden, shape.heads, dropout=shape.attention_dropout),
            _norm(shape),
        )
        for block in _blocks(shape)
    ]
    norm = _norm(spec) if spec.norm == "before" else None
    return Decoder(_embeddings(spec, tokens, {}), blocks, norm=norm)


def _embeddings(spec: Spec, tokens: nn.Embedding, channels: Mapping[str, int]) -> Embeddings:
    rows, first = spec.positions.table
    project = spec.projected or spec.embedding != spec.hidden
    embeddings = Embeddings(
        tokens,
        rows=rows,
        first=first,
        channels=channels,
        project=spec.hidden if project else None,
        norm_eps=spec.norm_eps if spec.embedding_norm else None,
        scale=spec.embedding**0.5 if spec.embedding_scale else None,
        dropout=spec.dropout,
    )
    embeddings.absent = {TASKS: spec.task}
    return embeddings


def _norm(spec: Spec) -> nn.LayerNorm:
    return nn.LayerNorm(spec.hidden, eps=spec.norm_eps)


def _blocks(spec: Spec) -> list[Block]:
    """The blocks, sharing the module objects that the spec says are shared."""
    blocks: list[Block] = []
    relative = isinstance(spec.positions, SegmentRecurrent)
    kind = RelativeAttention if relative else Attention
    for shape in spec.layer_shapes:
        if blocks and spec.sharing in ("all", "attention"):
            attention, attention_norm = blocks[0].attention, blocks[0].attention_norm
        else:
            parts = spec.hidden, shape.heads, shape.head_width
            attention = kind(*parts, dropout=spec.attention_dropout)
            attention_norm = _norm(spec)
        if blocks and spec.sharing in ("all", "feed_forward"):
            feed_forward, norm = blocks[0].feed_forward, blocks[0].feed_forward_norm
        else:
            feed_forward = FeedForward(spec.hidden, shape.feed_forward, activation=spec.activation)
            norm = _norm(spec)
        halves = (attention, attention_norm, feed_forward, norm)
        blocks.append(Block(*halves, dropout=spec.dropout, norm=spec.norm))
    return blocks


def build_head(variant: Variant, spec: Spec, head: Head) -> nn.Module:
    """The module of one head, as torch draws it."""
    own = variant.heads[head.kind]
    if own.build is not None:
        return own.build(spec, head, own)
    usual = spec.dropout if own.dropped else 0.0
    return Classifier(
        spec.hidden,
        head.outputs,
        activation=own.activation_of(spec),
        dropout=usual if head.dropout is None else head.dropout,
        dropout_first=own.dropout_first,
        bias=own.bias,
    )
