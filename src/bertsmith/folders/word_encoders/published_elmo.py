"""Published ELMo folders: options.json and an hdf5 file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bertsmith.config import validated
from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.word_encoders.hdf5 import read_hdf5
from bertsmith.models.word_encoders.elmo_spec import ElmoSpec

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.word_encoders.elmo_network import ElmoNetwork

OPTIONS = "options.json"
WEIGHTS = "weights.hdf5"
FILE_ROWS = 261  # of char_embed; the row of places without a word is added
DIRECTIONS = 2


class _Piece(NamedTuple):
    """A dataset and its shape in the file."""

    name: str
    shape: tuple[int, ...]


def read_published(path: Path) -> ElmoNetwork:
    """The model of a published folder; every shape is compared before memory is taken."""
    import torch

    from bertsmith.models.word_encoders.elmo_network import ElmoNetwork

    folder = Folder.at(path)
    spec = _spec(folder.json_object(OPTIONS), str(folder.path / OPTIONS))
    weights = folder.path / WEIGHTS
    if not weights.is_file():
        raise FolderError(f"{weights} is missing; put the hdf5 file of the model there")
    shapes = {piece.name: piece.shape for piece in _pieces(spec)}
    stored = read_hdf5(folder, WEIGHTS, shapes, source=OPTIONS)
    network = ElmoNetwork(spec)
    with torch.no_grad():
        _fill(network, stored)
    return network.eval()


def _spec(options: dict[str, Any], where: str) -> ElmoSpec:
    """The shape that options.json describes."""
    try:
        cnn, lstm = options["char_cnn"], options["lstm"]
        values = {
            "length": cnn["max_characters_per_token"],
            "characters": cnn["embedding"]["dim"],
            "filters": cnn["filters"],
            "activation": cnn["activation"],
            "highways": cnn.get("n_highway") or 0,
            "hidden": lstm["dim"],
            "projection": lstm["projection_dim"],
            "layers": lstm["n_layers"],
            "residual": bool(lstm.get("use_skip_connections", False)),
            "cell_clip": _clip(lstm.get("cell_clip")),
            "projection_clip": _clip(lstm.get("proj_clip")),
        }
    except (KeyError, TypeError, AttributeError) as fault:
        raise FolderError(
            f"{where} has no {fault}; give the options.json that was published with the weights"
        ) from fault
    return validated(ElmoSpec, values, where)


def _clip(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and value else None


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def _pieces(spec: ElmoSpec) -> list[_Piece]:
    """Every dataset that is read, as published files shape it."""
    pieces = [_Piece("char_embed", (FILE_ROWS, spec.characters))]
    for number, (width, count) in enumerate(spec.filters):
        pieces.append(_Piece(f"CNN/W_cnn_{number}", (1, width, spec.characters, count)))
        pieces.append(_Piece(f"CNN/b_cnn_{number}", (count,)))
    wide = spec.convolved
    for number in range(spec.highways):
        for gate in ("carry", "transform"):
            pieces.append(_Piece(f"CNN_high_{number}/W_{gate}", (wide, wide)))
            pieces.append(_Piece(f"CNN_high_{number}/b_{gate}", (wide,)))
    if spec.projects_words:
        pieces.append(_Piece("CNN_proj/W_proj", (wide, spec.projection)))
        pieces.append(_Piece("CNN_proj/b_proj", (spec.projection,)))
    for direction in range(DIRECTIONS):
        for layer in range(spec.layers):
            cell = _cell(direction, layer)
            pieces.append(_Piece(f"{cell}/W_0", (2 * spec.projection, 4 * spec.hidden)))
            pieces.append(_Piece(f"{cell}/B", (4 * spec.hidden,)))
            if spec.projects_cells:
                pieces.append(_Piece(f"{cell}/W_P_0", (spec.hidden, spec.projection)))
    return pieces


def _fill(network: ElmoNetwork, stored: dict[str, Tensor]) -> None:
    """Copy the tensors of a file, turned as torch has them."""
    spec, words = network.spec, network.words
    words.characters.weight.zero_()
    words.characters.weight[1:].copy_(stored["char_embed"])
    state = network.state_dict()
    for number in range(len(spec.filters)):
        kernel = stored[f"CNN/W_cnn_{number}"][0]  # (width, characters, count)
        state[f"words.convolutions.{number}.weight"].copy_(kernel.permute(2, 1, 0))
        state[f"words.convolutions.{number}.bias"].copy_(stored[f"CNN/b_cnn_{number}"])
    for number in range(spec.highways):
        for gate in ("carry", "transform"):
            name, own = f"CNN_high_{number}", f"words.highways.{number}.{gate}"
            state[f"{own}.weight"].copy_(stored[f"{name}/W_{gate}"].t())
            state[f"{own}.bias"].copy_(stored[f"{name}/b_{gate}"])
    if spec.projects_words:
        state["words.projection.weight"].copy_(stored["CNN_proj/W_proj"].t())
        state["words.projection.bias"].copy_(stored["CNN_proj/b_proj"])
    for direction in range(DIRECTIONS):
        for layer in range(spec.layers):
            cell, own = _cell(direction, layer), f"directions.{direction}.{layer}"
            whole = stored[f"{cell}/W_0"].t()  # (4 hidden, input and output)
            state[f"{own}.inputs.weight"].copy_(whole[:, : spec.projection])
            state[f"{own}.outputs"].copy_(whole[:, spec.projection :])
            bias = stored[f"{cell}/B"].clone()
            bias[2 * spec.hidden : 3 * spec.hidden] += 1.0  # TensorFlow's forget bias
            state[f"{own}.inputs.bias"].copy_(bias)
            if spec.projects_cells:
                state[f"{own}.projection"].copy_(stored[f"{cell}/W_P_0"].t())
