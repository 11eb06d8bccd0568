"""Beam search by the rules of transformers 5: several candidates per text, the best answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.runtime.generation.live_rows import LiveRows, TextJob
from bertsmith.runtime.generation.options import WritingPlan
from bertsmith.runtime.generation.processors import Processors
from bertsmith.runtime.generation.search import (
    Advance,
    Written,
    is_end,
    largest,
    refuse,
    why,
)

FAR = -1.0e9  # the score of a beam that is not there yet


class BeamSearch:
    """B texts of k beams each: rows b * k to b * k + k - 1 belong to the text b.

    At every step the best k * (1 + number of end tokens) continuations of a text are looked at,
    at least 2k. Those that end count as answers if they are among the first k; the first k that do
    not end run on. The score of an answer is its sum of log-probabilities divided by its length to
    the power of the length penalty; a text has at most k answers.
    """

    def __init__(self, plan: WritingPlan, processors: Processors) -> None:
        self.rows_per_text = plan.beams
        self._plan = plan
        self._processors = processors
        self._rows = LiveRows()
        self._jobs: list[TextJob] = []
        self._answers: list[list[Written]] = []  # of each job, best first
        self._running = torch.empty(0, plan.beams)  # (B, k) sums of log-probabilities
        self._worst = torch.empty(0)  # (B,) the score to beat; FAR while there are less than k

    def enter(self, jobs: Sequence[TextJob]) -> None:
        """Add texts behind the live ones."""
        beams = self.rows_per_text
        self._rows.enter(jobs, len(self._jobs), beams, history=self._processors.needs_history)
        self._jobs += jobs
        self._answers += [[] for _ in jobs]
        # All beams of a text are equal at first: only one of them may be continued.
        running = torch.full((len(jobs), beams), FAR)
        running[:, 0] = 0.0
        self._running = torch.cat([self._running, running])
        self._worst = torch.cat([self._worst, torch.full((len(jobs),), FAR)])

    @torch.inference_mode()
    def advance(self, logits: Tensor) -> Advance:
        """The next token of every beam: (B * k, V)."""
        rows, beams = self._rows, self.rows_per_text
        values, parents, tokens = self._continuations(logits)
        if not values[:, 0].isfinite().all():
            refuse(values[:, 0], self._jobs, rows.jobs[::beams].tolist())
        length = rows.written[::beams] + 1  # (B,)
        limits = rows.limits[::beams]
        ended = is_end(tokens, self._plan.ends) | (length >= limits)[:, None]  # (B, M)
        powers = length.double() ** self._plan.length_penalty
        scores = values / powers.float()[:, None]
        events = ended[:, :beams].nonzero().tolist()
        for text, place in events:
            self._answer(
                text, float(scores[text, place]), parents[text, place], tokens[text, place]
            )
        order = (values + ended * FAR).topk(beams).indices  # (B, k)
        self._running = (values + ended * FAR).gather(1, order)
        kept = parents.gather(1, order).view(-1)
        newest = tokens.gather(1, order).view(-1)
        done = self._done(length, limits, powers)
        finished = [self._finished(text) for text in done.nonzero()[:, 0].tolist()]
        if finished:
            live = ~done
            self._running, self._worst = self._running[live], self._worst[live]
            chosen = live.repeat_interleave(beams)
            kept, newest = kept[chosen], newest[chosen]
        same = torch.equal(kept, torch.arange(len(rows)))  # no beam has changed its place
        if not same:
            rows.keep(kept)
        rows.append(newest)
        return Advance(newest, None if same else kept, finished)

    def _continuations(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of each text: sums, rows they continue, tokens; (B, M) each."""
        beams, vocabulary = self.rows_per_text, logits.shape[1]
        wanted = max(2, 1 + len(self._plan.ends)) * beams
        each = min(wanted, vocabulary)
        scores = logits.log_softmax(dim=1)
        if self._processors.active(self._rows):
            scores = self._processors(scores, self._rows)
        values, tokens = largest(scores, each)
        values = values.view(-1, beams, each) + self._running[:, :, None]
        best = values.view(-1, beams * each).topk(min(wanted, beams * each))
        first = torch.arange(0, len(logits), beams)[:, None]
        parents = first + best.indices.div(each, rounding_mode="floor")
        return best.values, parents, tokens.view(-1, beams * each).gather(1, best.indices)

    def _answer(self, text: int, score: float, parent: Tensor, token: Tensor) -> None:
        """Add an answer to those of a text; the k best stay."""
        number = int(self._rows.jobs[text * self.rows_per_text])
        job, answers = self._jobs[number], self._answers[number]
        ids = [*self._rows.new_tokens(int(parent)), int(token)]
        answers.append(Written(tuple(ids), score, why(job, ids, self._plan)))
        answers.sort(key=lambda one: -one.score)
        del answers[self.rows_per_text :]
        if len(answers) == self.rows_per_text:
            self._worst[text] = answers[-1].score

    def _done(self, length: Tensor, limits: Tensor, powers: Tensor) -> Tensor:
        """Whether each text is finished: (B,)."""
        penalty = self._plan.length_penalty
        if self._plan.stop == "never" and penalty > 0.0:
            powers = limits.double() ** penalty
        likely = self._running[:, 0] / powers.float() > self._worst
        done = ~likely | (length >= limits)
        return done | (self._worst > FAR) if self._plan.stop == "early" else done

    def _finished(self, text: int) -> tuple[TextJob, list[Written]]:
        number = int(self._rows.jobs[text * self.rows_per_text])
        return self._jobs[number], self._answers[number][: self._plan.answers]
