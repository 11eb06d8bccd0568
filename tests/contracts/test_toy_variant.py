"""A variant of one's own, with positions and a head of its own: trained, saved, loaded."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models import HeadSpec, Positions
from bertsmith.models.build import build
from bertsmith.models.variants.bert import VARIANT as BERT
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.positions import AttentionPositions, PositionTerms


class DistanceBias(AttentionPositions):  # a learned number for each distance
    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach, self.table = reach, nn.Parameter(torch.empty(2 * reach + 1))

    def of_batch(self, head_width, *, device, dtype):
        def terms(queries, keys):
            added, far = PositionTerms(), keys[:, None] - queries[:, :, None] + self.reach
            added.scores = lambda q, k: 50 * self.table[far.clamp(0, 2 * self.reach)][:, None]
            return added

        return terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances(Positions):
    kind: ClassVar[str] = "toy_distances"
    reach: int = 4

    def attention(self) -> DistanceBias:
        return DistanceBias(self.reach)


HEADS = {**BERT.heads, "previous": HeadSpec(build=lambda spec, head, own: nn.Linear(128, 20))}
SPEC = replace(BERT.sizes["tiny"], vocab_size=20, positions=Distances(), dropout=0, pooler=False)
TOY = replace(BERT, name="toy", model_type="toy", spec=SPEC, prefix="toy", heads=HEADS)


def test_a_toy_variant_trains_saves_and_loads(tmp_path) -> None:
    spec = replace(SPEC, positions=Distances(reach=2), attention_dropout=0)
    model = build(TOY, spec, heads=["previous"], generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    inputs = Inputs(torch.tensor([4, 5, 6, 5, 4, 6]), Layout.of([3, 3]))  # only the order differs
    for _ in range(80):
        logits = model.logits("previous", model(inputs).hidden)
        loss = nn.functional.cross_entropy(logits, torch.tensor([1, 4, 5, 1, 5, 4]))
        optimizer.zero_grad() or loss.backward()
        optimizer.step()
    assert loss < 0.3  # 0.69 without positions
    save_model(model.eval(), None, tmp_path / "m")
    again = load_model(tmp_path / "m", variants=[TOY]).model
    assert (again.variant, again.spec, tuple(again.heads)) == (TOY, spec, ("previous",))
    assert torch.equal(again(inputs).hidden, model(inputs).hidden)
