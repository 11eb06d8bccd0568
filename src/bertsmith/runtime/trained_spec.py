"""How the data was read that a fine-tuned folder was trained on, as its record tells it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from pydantic import ValidationError

from bertsmith.labeled.spec import DataSpec

log = logging.getLogger(__name__)

RECORD = "proof.json"
LARGEST = 200_000_000  # bytes


def trained_spec(folder: Path) -> DataSpec | None:
    """The spec of the training file; None where the record is missing or tells none."""
    path = folder / RECORD
    try:
        if path.stat().st_size > LARGEST:
            return None
        told = json.loads(path.read_bytes())["data"]["spec"]
        return DataSpec.from_json(json.dumps(told)) if told else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as fault:
        log.info("%s tells nothing of the training data: %s", path, fault)
        return None
