"""A published ELMo folder with random weights, and its sums as plain loops in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILTERS = [[1, 4], [2, 6], [3, 8]]
CHARACTERS, HIDDEN, PROJECTION, LAYERS, LENGTH = 5, 12, 7, 2, 20


def write_published(folder: Path, *, seed: int = 0, highways: int = 2) -> dict[str, np.ndarray]:
    """Write options.json and weights.hdf5; the weights by name."""
    import h5py

    random = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int, scale: float = 0.6) -> None:
        weights[name] = (scale * random.standard_normal(shape)).astype(np.float32)

    add("char_embed", 261, CHARACTERS, scale=1.0)
    wide = sum(number for _, number in FILTERS)
    for at, (width, number) in enumerate(FILTERS):
        add(f"CNN/W_cnn_{at}", 1, width, CHARACTERS, number)
        add(f"CNN/b_cnn_{at}", number)
    for at in range(highways):
        for gate in ("carry", "transform"):
            add(f"CNN_high_{at}/W_{gate}", wide, wide, scale=0.4)
            add(f"CNN_high_{at}/b_{gate}", wide)
    add("CNN_proj/W_proj", wide, PROJECTION, scale=0.1)
    add("CNN_proj/b_proj", PROJECTION)
    for direction in range(2):
        for layer in range(LAYERS):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            add(f"{cell}/W_0", 2 * PROJECTION, 4 * HIDDEN, scale=0.3)
            add(f"{cell}/B", 4 * HIDDEN)
            add(f"{cell}/W_P_0", HIDDEN, PROJECTION, scale=1.5)
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, values in weights.items():
            file.create_dataset(name, data=values)
    (folder / "options.json").write_text(json.dumps(options(highways)), encoding="utf-8")
    return weights


def options(highways: int = 2) -> dict[str, Any]:
    """options.json as it is published for reading."""
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": PROJECTION,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": HIDDEN,
            "n_layers": LAYERS,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": highways,
            "embedding": {"dim": CHARACTERS},
            "n_characters": 262,
            "max_characters_per_token": LENGTH,
        },
    }


class PlainElmo:
    """The same model as loops over words and steps; states are carried between sentences."""

    def __init__(self, weights: dict[str, np.ndarray], *, highways: int = 2) -> None:
        self.weights = {name: values.astype(np.float64) for name, values in weights.items()}
        self.highways = highways
        self.clipped = 0  # how often a clip changed a number
        self.states = {
            (direction, layer): (np.zeros(PROJECTION), np.zeros(HIDDEN))
            for direction in range(2)
            for layer in range(LAYERS)
        }

    def sentence(self, words: list[str]) -> np.ndarray:
        """The layers of all words: (3, n, 2 x projection)."""
        tokens = [[258, 256, 259], *map(_characters, words), [258, 257, 259]]
        vectors = [self._word(token) for token in tokens]
        layers = [[np.concatenate([vector, vector]) for vector in vectors]]
        both = [self._direction(0, vectors), self._direction(1, vectors[::-1])]
        for layer in range(LAYERS):
            back = both[1][layer][::-1]
            layers.append([np.concatenate(pair) for pair in zip(both[0][layer], back, strict=True)])
        return np.array(layers)[:, 1:-1]

    def _word(self, token: list[int]) -> np.ndarray:
        ids = token + [260] * (LENGTH - len(token))
        places = self.weights["char_embed"][ids]
        parts = []
        for at, (width, number) in enumerate(FILTERS):
            kernel, bias = self.weights[f"CNN/W_cnn_{at}"][0], self.weights[f"CNN/b_cnn_{at}"]
            sums = np.array(
                [
                    [
                        (places[p : p + width] * kernel[:, :, f]).sum() + bias[f]
                        for f in range(number)
                    ]
                    for p in range(LENGTH - width + 1)
                ]
            )
            parts.append(np.maximum(sums.max(axis=0), 0))
        vector = np.concatenate(parts)
        for at in range(self.highways):
            read = {
                key: self.weights[f"CNN_high_{at}/{key}"]
                for key in ("W_carry", "b_carry", "W_transform", "b_transform")
            }
            gate = _sigmoid(vector @ read["W_carry"] + read["b_carry"])
            new = np.maximum(vector @ read["W_transform"] + read["b_transform"], 0)
            vector = gate * new + (1 - gate) * vector
        return vector @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]

    def _direction(self, direction: int, inputs: list[np.ndarray]) -> list[list[np.ndarray]]:
        layers = []
        for layer in range(LAYERS):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            output, memory = self.states[direction, layer]
            outputs = []
            for entering in inputs:
                row = np.concatenate([entering, output]) @ self.weights[f"{cell}/W_0"]
                i, j, f, o = np.split(row + self.weights[f"{cell}/B"], 4)
                memory = _sigmoid(f + 1.0) * memory + _sigmoid(i) * np.tanh(j)
                memory = self._clip(memory)
                output = (_sigmoid(o) * np.tanh(memory)) @ self.weights[f"{cell}/W_P_0"]
                output = self._clip(output)
                outputs.append(output + entering if layer else output)
            self.states[direction, layer] = (output, memory)
            layers.append(outputs)
            inputs = outputs
        return layers

    def _clip(self, values: np.ndarray) -> np.ndarray:
        self.clipped += int((np.abs(values) > 3).sum())
        return np.clip(values, -3, 3)


def _characters(word: str) -> list[int]:
    return [258, *word.encode()[: LENGTH - 2], 259]


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))
