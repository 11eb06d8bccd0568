"""The model that is trained: an encoder, the layers after it, and the objective's own weights."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.folders.read import LoadedFolder
from bertsmith.models.build import Model
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings
from bertsmith.models.surgery import whole_tensor
from bertsmith.nn.encoder import Want
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.sentence_head import mix_layers
from bertsmith.sentences.train.objectives import (
    SimCSESettings,
    TripletSettings,
    VectorObjective,
    build_matryoshka,
    build_objective,
)
from bertsmith.sentences.train.recipe import SentenceRecipe
from bertsmith.training.trainable import trainable


class TrainedDense(nn.Module):
    """A dense layer after the pooling, as `SentenceHead` reads it, with weights that learn."""

    bias: nn.Parameter | None
    residual_weight: nn.Parameter | None

    def __init__(self, layer: DenseLayer) -> None:
        super().__init__()
        if layer.weight is None:
            raise ConfigError("the dense layer was read without its weights")
        self.settings = layer
        self.activation = layer.activation
        self.residual = layer.residual
        self.weight = nn.Parameter(layer.weight.detach().float().clone())
        for name, tensor in (("bias", layer.bias), ("residual_weight", layer.residual_weight)):
            learned = None if tensor is None else nn.Parameter(tensor.detach().float().clone())
            self.register_parameter(name, learned)

    def learned(self) -> DenseLayer:
        """The layer with its weights as they are now."""
        return replace(
            self.settings,
            weight=whole_tensor(self.weight),
            bias=None if self.bias is None else whole_tensor(self.bias),
            residual_weight=(
                None if self.residual_weight is None else whole_tensor(self.residual_weight)
            ),
        )


class SentenceModel(nn.Module):
    """Texts in, vectors out; `objective` compares them."""

    def __init__(
        self,
        model: Model,
        settings: SentenceSettings,
        objective: VectorObjective,
        *,
        extra: DenseLayer | None = None,
    ) -> None:
        """`extra` is a layer that is used in training only."""
        super().__init__()
        self.model = model
        self.settings = settings
        self.dense = nn.ModuleList(TrainedDense(layer) for layer in settings.dense)
        self.extra = None if extra is None else TrainedDense(extra)
        self.objective = objective
        self.prompt_rows = 0  # leading rows of each text that are not pooled

    @property
    def width(self) -> int:
        """The width of a vector."""
        return self.settings.width(self.model.spec.hidden)

    def forward(self, inputs: Inputs) -> Tensor:
        """T rows of B texts -> (B, W)."""
        lengths = list(inputs.layout.lengths)
        mix = self.settings.layer_mix
        if mix is not None:
            hidden = mix_layers(self.model(inputs, want=Want(layers=True)).layers, mix)
        elif self.settings.pooling == ("first",) and not self.prompt_rows:
            sizes = torch.tensor(lengths, device=inputs.ids.device)
            starts = sizes.cumsum(0) - sizes  # the last block computes no other row then
            hidden, lengths = self.model(inputs, rows=starts).hidden, [1] * len(lengths)
        else:
            hidden = self.model(inputs).hidden
        layers = [*self.dense]
        if self.extra is not None and self.training:
            layers.append(self.extra)
        head = replace(self.settings, dense=()).head()
        return replace(head, dense=layers)(hidden, lengths, self.prompt_rows)

    def learned_settings(self) -> SentenceSettings:
        """The settings with the dense layers as they are now."""
        layers = tuple(layer.learned() for layer in self.dense if isinstance(layer, TrainedDense))
        return replace(self.settings, dense=layers)


def sentence_settings(recipe: SentenceRecipe, loaded: LoadedFolder) -> SentenceSettings:
    """How the trained model pools: as its folder says, or as the recipe does."""
    own = loaded.sentence or SentenceSettings()
    wanted = recipe.vector
    if wanted.pooling != "auto":
        if own.dense and own.pooling != (wanted.pooling,):
            raise ConfigError(
                f"vector.pooling = {wanted.pooling}: the dense layers of this model were made for "
                f"{'+'.join(own.pooling)}; leave the setting out"
            )
        own = replace(own, pooling=(wanted.pooling,))
    if wanted.normalize is not None:
        own = replace(own, normalize=wanted.normalize)
    return own


def build_sentence_model(
    recipe: SentenceRecipe, loaded: LoadedFolder, *, classes: int = 0, device: str = "cpu"
) -> SentenceModel:
    """The module to train, on the CPU still."""
    if recipe.objective is None:
        raise ConfigError("the objective is not decided; set objective.kind")
    random = torch.Generator().manual_seed(recipe.run.seed)
    settings = sentence_settings(recipe, loaded)
    model = trainable(loaded.model, (), recipe.encoder, device=device)
    width = settings.width(model.spec.hidden)
    extra = None
    if isinstance(recipe.objective, SimCSESettings) and recipe.objective.head != "none":
        extra = _tanh_layer(width, random)
        if recipe.objective.head == "kept":
            settings, extra = replace(settings, dense=(*settings.dense, extra)), None
    _check_margin(recipe, normalized=settings.normalize or bool(recipe.matryoshka.dims))
    if recipe.matryoshka.dims:
        objective: VectorObjective = build_matryoshka(
            recipe.objective,
            recipe.matryoshka.dims,
            recipe.matryoshka.weights,
            width=width,
            classes=classes,
            generator=random,
        )
    else:
        objective = build_objective(
            recipe.objective, width=width, classes=classes, generator=random
        )
    return SentenceModel(model, settings, objective, extra=extra)


def _tanh_layer(width: int, random: torch.Generator) -> DenseLayer:
    """A square layer with tanh, at random (BERT's pooler)."""
    weight = torch.empty(width, width).normal_(0.0, 0.02, generator=random)
    return DenseLayer(
        inputs=width, outputs=width, activation="tanh", weight=weight, bias=torch.zeros(width)
    )


def _check_margin(recipe: SentenceRecipe, *, normalized: bool) -> None:
    """Refuse a margin that no vectors can reach."""
    objective = recipe.objective
    if not isinstance(objective, TripletSettings) or objective.margin < 2:
        return
    if objective.distance == "cosine" or (objective.distance == "euclidean" and normalized):
        what = "cosine distances" if objective.distance == "cosine" else "distances of unit vectors"
        raise ConfigError(
            f"objective.margin = {objective.margin:g}: {what} lie between 0 and 2, so no triplet "
            "could ever satisfy it; give a margin below 2"
        )
