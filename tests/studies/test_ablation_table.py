"""Tables of ablations on simulated figures: planted differences, none, too few seeds."""

import math

import numpy as np
import pytest

from bertsmith.report.elements.page import page
from bertsmith.studies.ablation.masked_loss import MASKED_LOSS
from bertsmith.studies.ablation.page import ablation_sections
from bertsmith.studies.ablation.table import (
    AblationTable,
    RowFigures,
    make_table,
    standard_errors_needed,
)
from bertsmith.studies.study import study_markdown

ACCURACY = "sst2 accuracy"


def _row(name: str, values: dict[str, list[float]], **more: object) -> RowFigures:
    numbered = {metric: dict(enumerate(one)) for metric, one in values.items()}
    return RowFigures(name=name, values=numbered, dashes={MASKED_LOSS: "no masks"}, **more)


def _simulated(
    random: np.random.Generator, *, rows: int, seeds: int, shift: float
) -> AblationTable:
    """Seeds move all rows together; every run has noise of its own."""
    common = {MASKED_LOSS: random.normal(3, 0.05, seeds), ACCURACY: random.normal(0.8, 0.01, seeds)}
    made = []
    for number in range(rows):
        moved = shift if number == 1 else 0.0
        values = {
            MASKED_LOSS: (common[MASKED_LOSS] + moved + random.normal(0, 0.01, seeds)).tolist(),
            ACCURACY: (common[ACCURACY] - moved / 2 + random.normal(0, 0.01, seeds)).tolist(),
        }
        made.append(_row("base" if number == 0 else f"row {number}", values))
    return make_table(made, range(seeds))


def test_a_planted_difference_gets_a_star_and_its_direction() -> None:
    table = _simulated(np.random.default_rng(1), rows=4, seeds=5, shift=0.2)
    cells = table.rows[1].cells
    assert cells[MASKED_LOSS].verdict == "worse"  # a larger loss
    assert cells[ACCURACY].verdict == "worse"  # a smaller accuracy
    assert "*" in " ".join(table.tables[0].rows[1])
    better = _simulated(np.random.default_rng(1), rows=4, seeds=5, shift=-0.2)
    assert better.rows[1].cells[MASKED_LOSS].verdict == "better"


def test_a_recipe_against_itself_gets_at_most_two_stars_in_twenty_tables() -> None:
    for start in range(5):
        random = np.random.default_rng(start)
        stars = [_simulated(random, rows=7, seeds=3, shift=0.0).stars for _ in range(20)]
        assert sum(count > 0 for count in stars) <= 2, stars


def test_a_row_that_shows_nothing_says_so() -> None:
    table = _simulated(np.random.default_rng(2), rows=3, seeds=3, shift=0.0)
    assert table.stars == 0
    assert [row.summary for row in table.rows] == ["", *["no difference shown"] * 2]
    assert "no difference shown" in page("t", ablation_sections(table))
    assert "no difference shown" in study_markdown(table, title="t")


def test_fewer_than_three_seeds_show_directions_only() -> None:
    table = _simulated(np.random.default_rng(3), rows=3, seeds=2, shift=5.0)
    assert table.stars == 0
    assert table.rows[1].summary == "direction only: masked loss worse, sst2 accuracy worse"
    assert any(note.startswith("direction only") for note in table.notes)
    single = _simulated(np.random.default_rng(3), rows=2, seeds=1, shift=5.0)
    assert math.isnan(single.rows[1].cells[ACCURACY].p)
    assert page("t", ablation_sections(single)).count("<svg") == 2


def test_two_seeds_that_disagree_have_no_direction() -> None:
    base = _row("base", {ACCURACY: [0.80, 0.82]})
    other = _row("other", {ACCURACY: [0.81, 0.81]})
    table = make_table([base, other], range(2))
    assert table.rows[1].summary == "direction only: seeds disagree"
    assert table.to_json()["rows"][1]["metrics"][ACCURACY]["difference"]["direction"] is None


def test_a_row_with_two_of_four_seeds_shows_a_direction_only() -> None:
    base = _row("base", {ACCURACY: [0.80, 0.81, 0.80, 0.82]})
    values = {ACCURACY: {0: 0.3, 1: 0.31001}}  # the other two diverged
    other = RowFigures(name="other", values=values, dashes={}, notes=("diverged with seed 2",))
    table = make_table([base, other], range(4))
    assert table.rows[1].cells[ACCURACY].verdict == "direction only"
    assert "other: diverged with seed 2" in table.notes


def test_a_star_needs_more_standard_errors_the_more_rows_a_table_has() -> None:
    # Student's t, 2 degrees of freedom: 4.303 at 5 %, 6.205 at 2.5 %.
    assert standard_errors_needed(3, 1) == pytest.approx(4.303, abs=1e-3)
    assert standard_errors_needed(3, 2) == pytest.approx(6.205, abs=1e-3)
    assert math.isnan(standard_errors_needed(2, 1))


def test_a_metric_that_a_row_lacks_is_a_dash_with_its_reason() -> None:
    base = _row("base", {MASKED_LOSS: [3.0, 3.1, 3.0], ACCURACY: [0.8, 0.81, 0.8]})
    other = _row("left to right", {ACCURACY: [0.7, 0.72, 0.69]})
    table = make_table([base, other], range(3))
    assert table.rows[1].cells[MASKED_LOSS].value is None
    assert "- in masked loss of left to right: no masks" in table.notes
    assert table.tables[0].rows[1][1:3] == ["-", "-"]
    assert table.to_json()["rows"][1]["metrics"][MASKED_LOSS]["reason"] == "no masks"


def test_names_of_rows_are_text_on_the_page() -> None:
    base = _row("base", {ACCURACY: [0.8, 0.81, 0.8]})
    other = _row("<script>alert(1)</script>", {ACCURACY: [0.7, 0.72, 0.69]})
    shown = page("<b>", ablation_sections(make_table([base, other], range(3))))
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "http://" not in shown.replace("http://www.w3.org", "")
