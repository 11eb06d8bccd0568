"""All that stands beside a model, for whoever writes that model anew."""

from __future__ import annotations

from bertsmith.files.safe_folder import Folder
from bertsmith.folders.beside import NOTHING, Beside
from bertsmith.folders.objective_heads import objective_heads, read_objective_heads
from bertsmith.folders.task_files import read_task, read_task_head, task_beside


def read_beside(folder: Folder) -> Beside:
    """The heads of pre-training and the task of fine-tuning, where a folder has them."""
    found = objective_heads(read_objective_heads(folder))
    section = read_task(folder)
    task = NOTHING if section is None else task_beside(section, read_task_head(folder, section))
    return found | task
