"""One layer of an encoder: attention and feed-forward, each added to its input and normed."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from bertsmith.nn.attention import Attention, AttentionTrace
from bertsmith.nn.attention_plan import AttentionPlan
from bertsmith.nn.cache.layer import LayerCache
from bertsmith.nn.dropout import dropout_added
from bertsmith.nn.feed_forward import FeedForward

NormPlace = Literal["after", "before"]


class Block(nn.Module):
    """Attention and feed-forward with residuals; parts may be shared between blocks.

    `norm` stands "after" each sum (post-norm, Vaswani et al. 2017, arXiv:1706.03762) or "before"
    each part (pre-norm, GPT-2).
    """

    def __init__(
        self,
        attention: Attention,
        attention_norm: nn.LayerNorm,
        feed_forward: FeedForward,
        feed_forward_norm: nn.LayerNorm,
        *,
        dropout: float = 0.0,
        norm: NormPlace = "after",
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm
        self.dropout = dropout
        self.norm = norm

    def forward(
        self,
        hidden: Tensor,
        plan: AttentionPlan,
        *,
        cache: LayerCache | None = None,
        head_mask: Tensor | None = None,
        trace: AttentionTrace | None = None,
    ) -> Tensor:
        """(T, D) -> (T or P, D); a `trace` is filled with what attention computed."""
        hidden = self.attend(hidden, plan, cache=cache, head_mask=head_mask, trace=trace)
        return self.feed(hidden)

    def attend(
        self,
        hidden: Tensor,
        plan: AttentionPlan,
        *,
        cache: LayerCache | None = None,
        head_mask: Tensor | None = None,
        trace: AttentionTrace | None = None,
    ) -> Tensor:
        """The half with attention: (T, D) -> (T or P, D)."""
        attended = self.attention(
            self.before(self.attention_norm, hidden),
            None,
            plan,
            cache=cache,
            head_mask=head_mask,
            trace=trace,
        )
        residual = hidden if plan.rows is None else hidden.index_select(0, plan.rows)
        return self.after(self.attention_norm, self.added(attended, residual))

    def feed(self, hidden: Tensor) -> Tensor:
        """The half with the feed-forward layers: (T, D) -> (T, D)."""
        change = self.feed_forward(self.before(self.feed_forward_norm, hidden))
        return self.after(self.feed_forward_norm, self.added(change, hidden))

    def before(self, norm: nn.LayerNorm, hidden: Tensor) -> Tensor:
        """What a part reads: its input, normed in a pre-norm block."""
        return norm(hidden) if self.norm == "before" else hidden

    def after(self, norm: nn.LayerNorm, hidden: Tensor) -> Tensor:
        """What a part leaves: the sum, normed in a post-norm block."""
        return norm(hidden) if self.norm == "after" else hidden

    def added(self, change: Tensor, residual: Tensor) -> Tensor:
        """The residual sum, with dropout of the change in training."""
        if self.training and self.dropout:
            return dropout_added(change, residual, self.dropout)
        # The change was made for this sum alone, so without autograd its memory can be reused.
        return change + residual if change.requires_grad else change.add_(residual)


class DecoderBlock(nn.Module):
    """A block with cross-attention between its self-attention and its feed-forward."""

    def __init__(self, block: Block, cross_attention: Attention, cross_norm: nn.LayerNorm) -> None:
        super().__init__()
        self.block = block
        self.cross_attention = cross_attention
        self.cross_norm = cross_norm

    def forward(
        self,
        hidden: Tensor,
        memory: Tensor,
        plan: AttentionPlan,
        cross_plan: AttentionPlan,
    ) -> Tensor:
        """Rows (T, D) and the memory (S, D) -> (T, D)."""
        block = self.block
        hidden = block.attend(hidden, plan)
        asking = block.before(self.cross_norm, hidden)
        attended = self.cross_attention(asking, memory, cross_plan)
        hidden = block.after(self.cross_norm, block.added(attended, hidden))
        return block.feed(hidden)
