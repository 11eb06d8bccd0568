"""Searches without beams: the likeliest token at every step, or one that is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.runtime.generation.live_rows import LiveRows, TextJob
from bertsmith.runtime.generation.options import WritingPlan
from bertsmith.runtime.generation.processors import Processors
from bertsmith.runtime.generation.sample import Draws
from bertsmith.runtime.generation.search import Advance, Written, is_end, largest, refuse, why


class RowSearch:
    """Every row is written for itself; a text with several answers has several rows."""

    def __init__(self, plan: WritingPlan, processors: Processors) -> None:
        self.rows_per_text = plan.answers
        self._plan = plan
        self._processors = processors
        self._draws = Draws(plan) if plan.sample else None
        self._rows = LiveRows()
        self._jobs: list[TextJob] = []
        self._answers: list[list[Written]] = []  # of each job, by the order of their ends
        self._totals = torch.empty(0)  # (R,) log-probabilities so far

    def enter(self, jobs: Sequence[TextJob]) -> None:
        """Add texts behind the live ones."""
        first, repeats = len(self._jobs), self.rows_per_text
        self._rows.enter(jobs, first, repeats, history=self._processors.needs_history)
        self._jobs += jobs
        self._answers += [[] for _ in jobs]
        self._totals = torch.cat([self._totals, torch.zeros(len(jobs) * repeats)])
        if self._draws is not None:
            self._draws.enter(jobs, repeats)

    @torch.inference_mode()
    def advance(self, logits: Tensor) -> Advance:
        """The next token of every live row: (R, V)."""
        rows = self._rows
        changed = self._processors.active(rows)
        scores = self._processors(logits.clone(), rows) if changed else logits
        best, tokens = (one[:, 0] for one in largest(scores, 1))
        if not best.isfinite().all():
            refuse(best, self._jobs, rows.jobs.tolist())
        if self._draws is not None:
            tokens = self._draws(scores, rows.written)
        self._totals += logits.log_softmax(dim=1).gather(1, tokens[:, None])[:, 0]
        rows.append(tokens)
        done = is_end(tokens, self._plan.ends) | (rows.written >= rows.limits)
        ended = done.nonzero()[:, 0].tolist()
        if not ended:
            return Advance(tokens, None, ())
        finished = self._finish(ended)
        live = (~done).nonzero()[:, 0]
        rows.keep(live)
        self._totals = self._totals[live]
        if self._draws is not None:
            self._draws.keep(live)
        return Advance(tokens[live], live, finished)

    def _finish(self, ended: Sequence[int]) -> list[tuple[TextJob, list[Written]]]:
        """The answers of rows that have ended; texts that have all of theirs."""
        finished = []
        for row in ended:
            number = int(self._rows.jobs[row])
            job, ids = self._jobs[number], self._rows.new_tokens(row)
            score = float(self._totals[row]) / len(ids)
            stopped = why(job, ids, self._plan)
            self._answers[number].append(Written(tuple(ids), score, stopped))
            if len(self._answers[number]) == self.rows_per_text:
                answers = sorted(self._answers[number], key=lambda one: (-one.score, one.ids))
                finished.append((job, answers))
        return finished
