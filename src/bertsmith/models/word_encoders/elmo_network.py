"""The network of ELMo: character CNN, highway layers, LSTMs with projections in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.models.word_encoders.elmo_spec import ElmoSpec
from bertsmith.text.whole_words.characters import ROWS

State = tuple[Tensor, Tensor]  # outputs (B, P) and cells (B, H) of a layer
States = list[list[State]]  # by direction, by layer
CARRY_BIAS = -2.0  # a highway begins by copying its input (Srivastava et al. 2015)
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class Highway(nn.Module):
    """g relu(W x + b) + (1 - g) x, with a gate g of x: (U, D) -> (U, D)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, rows: Tensor) -> Tensor:
        """(U, D) -> (U, D)."""
        gate = torch.sigmoid(self.carry(rows))
        return gate * torch.relu(self.transform(rows)) + (1 - gate) * rows


class CharacterCnn(nn.Module):
    """Vectors of words from their characters: (U, length) -> (U, P)."""

    def __init__(self, spec: ElmoSpec) -> None:
        super().__init__()
        # Row 0, of places without a word, stays 0.
        self.characters = nn.Embedding(ROWS, spec.characters, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(spec.characters, number, width) for width, number in spec.filters
        )
        self.activation = ACTIVATIONS[spec.activation]
        self.highways = nn.ModuleList(Highway(spec.convolved) for _ in range(spec.highways))
        self.projection: nn.Module = nn.Identity()
        if spec.projects_words:
            self.projection = nn.Linear(spec.convolved, spec.projection)

    def forward(self, rows: Tensor) -> Tensor:
        """(U, length) -> (U, P)."""
        places = self.characters(rows).transpose(1, 2)  # (U, E, length)
        parts = [
            self.activation(convolution(places).amax(dim=2)) for convolution in self.convolutions
        ]
        words = torch.cat(parts, dim=1)
        for highway in self.highways:
            words = highway(words)
        projected: Tensor = self.projection(words)
        return projected


class ProjectedLstm(nn.Module):
    """One LSTM layer whose output is projected, with clips: (L, B, P) -> (L, B, P).

    torch's own LSTM has no clips. Gates stand in the order of published files: input, new, forget,
    output. TensorFlow adds 1 to the forget gate as it runs; here that is part of the bias.
    """

    def __init__(self, spec: ElmoSpec) -> None:
        super().__init__()
        hidden, width = spec.hidden, spec.projection
        self.inputs = nn.Linear(width, 4 * hidden)
        self.outputs = nn.Parameter(torch.empty(4 * hidden, width))  # from the step before
        self.projection: nn.Parameter | None = None
        if spec.projects_cells:
            self.projection = nn.Parameter(torch.empty(width, hidden))
        self.hidden, self.width = hidden, width
        self.cell_clip, self.projection_clip = spec.cell_clip, spec.projection_clip

    def forward(
        self, rows: Tensor, lengths: Sequence[int], state: State | None
    ) -> tuple[Tensor, State]:
        """(L, B, P), lengths that never rise -> outputs (L, B, P), 0 beyond a length; states.

        Columns that have ended take no more part, and keep their last state.
        """
        steps, columns = rows.shape[:2]
        # Apart, for the gradient of one step of a whole tensor would be as large as all of it.
        entering = self.inputs(rows).unbind(0)  # L of (B, 4H)
        if state is None:
            state = (rows.new_zeros(columns, self.width), rows.new_zeros(columns, self.hidden))
        output, cell = state
        found, ended = [], []
        for step in range(steps):
            live = sum(length > step for length in lengths)
            if live < len(output):
                ended.append((output[live:], cell[live:]))
                output, cell = output[:live], cell[:live]
            output, cell = self._step(entering[step][:live], output, cell)
            found.append(F.pad(output, (0, 0, 0, columns - live)) if live < columns else output)
        last = [(output, cell), *reversed(ended)]
        final = (torch.cat([out for out, _ in last]), torch.cat([memory for _, memory in last]))
        return torch.stack(found), final

    def _step(self, entering: Tensor, output: Tensor, cell: Tensor) -> State:
        gates = torch.addmm(entering, output, self.outputs.t())
        enter, new, forget, leave = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        output = torch.sigmoid(leave) * torch.tanh(cell)
        if self.projection is not None:
            output = F.linear(output, self.projection)
            if self.projection_clip is not None:
                output = output.clamp(-self.projection_clip, self.projection_clip)
        return output, cell


class ElmoNetwork(nn.Module):
    """Characters of distinct words, and where they stand -> layers of both directions."""

    def __init__(self, spec: ElmoSpec) -> None:
        super().__init__()
        self.spec = spec
        self.words = CharacterCnn(spec)
        self.directions = nn.ModuleList(
            nn.ModuleList(ProjectedLstm(spec) for _ in range(spec.layers)) for _ in range(2)
        )

    def forward(
        self,
        rows: Tensor,
        places: Tensor,
        lengths: Sequence[int],
        *,
        states: States | None = None,
        dropout: float = 0.0,
    ) -> tuple[Tensor, list[list[Tensor]], States]:
        """(U, length), (L, B) -> vectors of words (L, B, P); layers by direction, each (L, B, P).

        `places` are rows of `rows`, each column in reading order with the sentence's ends; lengths
        never rise. Backward layers are turned round again, so that place t is of word t. `states`
        begin each direction where the sentences before ended it.
        """
        vectors = self.words(rows)
        tokens = F.embedding(places, vectors)  # (L, B, P)
        dropped = F.dropout(tokens, dropout, self.training)
        turned = reversal(lengths, len(places)).to(places.device)
        found, left = [], []
        for number, direction in enumerate(self.directions):
            hidden = dropped if number == 0 else _turn(dropped, turned)
            layers, ends = [], []
            for depth, layer in enumerate(cast("nn.ModuleList", direction)):
                before = None if states is None else states[number][depth]
                output, end = layer(hidden, lengths, before)
                output = F.dropout(output, dropout, self.training)
                hidden = output + hidden if depth and self.spec.residual else output
                layers.append(hidden if number == 0 else _turn(hidden, turned))
                ends.append(end)
            found.append(layers)
            left.append(ends)
        return tokens, found, left

    def stacked(self, tokens: Tensor, layers: Sequence[Sequence[Tensor]]) -> Tensor:
        """The layers that are mixed, words doubled first: (layers + 1, L, B, 2P)."""
        pairs = [torch.cat([tokens, tokens], dim=-1)]
        pairs += [torch.cat([forward, back], dim=-1) for forward, back in zip(*layers, strict=True)]
        return torch.stack(pairs)


def reversal(lengths: Sequence[int], steps: int) -> Tensor:
    """The places that turn each column round and leave its padding: (L, B)."""
    sizes = torch.tensor(lengths)[None, :]
    place = torch.arange(steps)[:, None]
    return torch.where(place < sizes, sizes - 1 - place, place)


def _turn(rows: Tensor, places: Tensor) -> Tensor:
    return rows.gather(0, places[:, :, None].expand_as(rows))


@torch.no_grad()
def initialize_elmo(network: nn.Module, generator: torch.Generator) -> None:
    """Uniform by fan-in, highways that copy, forget gates that keep."""
    for module in network.modules():
        if isinstance(module, nn.Embedding):
            module.weight.uniform_(-1.0, 1.0, generator=generator)
            module.weight[0].zero_()
        elif isinstance(module, nn.Linear | nn.Conv1d):
            bound = module.weight[0].numel() ** -0.5
            module.weight.uniform_(-bound, bound, generator=generator)
            if module.bias is not None:
                module.bias.zero_()
    for module in network.modules():
        if isinstance(module, Highway):
            module.carry.bias.fill_(CARRY_BIAS)
        elif isinstance(module, ProjectedLstm):
            for weight in (module.outputs, module.projection):
                if weight is not None:
                    bound = weight.shape[1] ** -0.5
                    weight.uniform_(-bound, bound, generator=generator)
            module.inputs.bias[2 * module.hidden : 3 * module.hidden].fill_(1.0)
