"""Stars of an ablation where there is nothing to find: one recipe against itself, other seeds.

The base of the grid `bert-paper` is trained with several seeds and probed, by the runs of
`bertsmith ablate`. Then tables are made of it alone: three of its seeds stand for the base, three
others for a row. Twenty draws share runs, so they are not independent; the share of all disjoint
draws with a star stands next to them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from bertsmith.api.observer import executing
from bertsmith.studies.ablation.runs import ablation_trials, row_figures
from bertsmith.studies.ablation.study import AblationRequest, read_ablation
from bertsmith.studies.ablation.table import RowFigures, make_table
from bertsmith.training.repeat.trials import held, run_trials
from machine import machine_facts

SEEDS_PER_ROW, ALLOWED = 3, 2
MOST_DRAWS = 2_000  # of all disjoint ones

Values = Mapping[str, Mapping[int, float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="shards of `bertsmith corpus build`")
    parser.add_argument("probes", type=Path, nargs="*")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rows", type=int, default=500, help="training rows of a probe")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("bench_out/ablation_self"))
    parser.add_argument("--out", type=Path, default=Path("bench_out/ablation_self.json"))
    given = parser.parse_args()

    began = time.process_time()
    values = trained(given)
    seconds = time.process_time() - began
    random = np.random.default_rng(0)
    drawn = [random.permutation(given.seeds)[: 2 * SEEDS_PER_ROW] for _ in range(given.trials)]
    stars = [stars_of(values, some[:SEEDS_PER_ROW], some[SEEDS_PER_ROW:]) for some in drawn]
    every = [stars_of(values, *two) for two in disjoint(given.seeds, random)]
    record = {
        "machine": machine_facts(given.threads),
        "seeds": given.seeds,
        "steps": given.steps,
        "values": {metric: list(by_seed.values()) for metric, by_seed in values.items()},
        "trials": given.trials,
        "stars": sum(stars),
        "tables_with_a_star": sum(count > 0 for count in stars),
        "allowed": ALLOWED,
        "all_draws": len(every),
        "share_of_all_draws_with_a_star": float(np.mean([count > 0 for count in every])),
        "cpu_seconds": seconds,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for metric, by_seed in values.items():
        found = np.array(list(by_seed.values()))
        print(f"{metric}: {found.mean():.4f}, deviation over seeds {found.std(ddof=1):.4f}")
    print(
        f"{given.trials} tables of {given.seeds} runs: {record['stars']} stars (at most {ALLOWED} "
        f"allowed); a star in {record['share_of_all_draws_with_a_star']:.1%} of {len(every):,} "
        f"disjoint draws; {seconds:.0f} CPU seconds"
    )
    return 0 if sum(stars) <= ALLOWED else 1


def trained(given: argparse.Namespace) -> Values:
    """Metrics of the base by seed; a run that was finished before is not repeated."""
    request = AblationRequest(
        recipe="bert-paper",
        corpus=given.corpus,
        out=given.runs,
        only=["1 layer"],  # a grid has a row; it is not trained
        settings=[
            "model.size=tiny",
            f"schedule.steps={given.steps}",
            f"run.threads={given.threads}",
        ],
        seeds=given.seeds,
        probes=given.probes,
        rows=(given.rows, 1_000),
    )
    whole = read_ablation(request).ablation
    study = replace(whole, rows=whole.rows[:1])
    with (
        executing(study.base.run, study.folder, None) as (execution, _),
        held(study.folder, execution.ranks),
    ):
        trials = ablation_trials(study, execution)
        done = run_trials(trials, study.folder, notice=lambda text: print(text, flush=True))
    return row_figures(study, done.rows)[0].values


def stars_of(values: Values, base: Sequence[int], row: Sequence[int]) -> int:
    """Stars in the table of some seeds against others, paired in their order."""
    rows = [
        RowFigures(
            name=name,
            values={
                metric: {place: by_seed[seed] for place, seed in enumerate(map(int, seeds))}
                for metric, by_seed in values.items()
            },
            dashes={},
        )
        for name, seeds in (("base", base), ("again", row))
    ]
    return make_table(rows, range(SEEDS_PER_ROW)).stars


def disjoint(count: int, random: np.random.Generator) -> list[tuple[list[int], list[int]]]:
    """Disjoint sets of seeds, one pair in random order; all of them if they are few."""
    found = []
    for first in combinations(range(count), SEEDS_PER_ROW):
        rest = [seed for seed in range(first[0] + 1, count) if seed not in first]
        found += [
            (list(first), random.permutation(second).tolist())
            for second in combinations(rest, SEEDS_PER_ROW)
        ]
    order = random.permutation(len(found))[:MOST_DRAWS]
    return [found[place] for place in order]


if __name__ == "__main__":
    raise SystemExit(main())
