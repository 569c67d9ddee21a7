"""The tables of the bench: readable at each width, without empty columns, rounds of a scenario merged."""

import pytest

from tests.bench.measure import Row, fixed_per_job, summarise, with_ratios
from tests.bench.table import label, written

ROWS = (
    Row("floor", aof="everysec", step_ms=0.1, cpu_s_per_1000_steps=0.1, spread={"floor_ratio": (1.0, 1.0)}),
    Row("linear", steps=200, conc=1, aof="always", step_ms=0.412, steps_per_s=2427, jobs_per_s=12.1, rss_kb=90_000),
    Row("opcua start", ready_s=1.1, cpu_s=0.9, spread={"ready_s": (1.0, 1.3), "cpu_s": (0.8, 0.9)}),
)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_of_a_table_is_wider_than_the_page(width: int) -> None:
    lines = written(ROWS, width).splitlines()
    assert max(map(len, lines)) <= width
    assert next(line.split("  ")[0] for line in lines if line.startswith("linear")) == "linear 200 steps always"


def test_a_table_has_no_column_without_a_figure() -> None:
    table = written(ROWS[2:], 80)
    assert table.split() == ["ready", "s", "CPU", "s", "opcua", "start", "1.1", "(1-1.3)", "0.9", "(0.8-0.9)"]


def test_rounds_of_a_scenario_are_merged_whatever_was_measured() -> None:
    rounds = [Row("opcua start", ready_s=ready_s, cpu_s=ready_s - 0.1) for ready_s in (1.0, 1.3, 1.1)]
    assert len({label(row) for row in rounds}) == 1
    merged = summarise(rounds)
    assert (merged.ready_s, merged.spread and merged.spread["ready_s"]) == (1.1, (1.0, 1.3))


def test_a_row_without_a_floor_of_its_durability_has_no_ratio() -> None:
    step = Row("linear", aof="always", step_ms=0.8, cpu_s_per_1000_steps=0.2)
    assert with_ratios(step, None).floor_ratio is None
    assert with_ratios(step, ROWS[0]).floor_ratio == 8.0


def test_a_job_without_steps_is_where_the_line_of_two_lengths_begins() -> None:
    # 2 ms, 5 trips and 6,000 bytes a job; 0.5 ms, 1 trip and 700 bytes a step.
    short, long = (
        Row(
            "linear",
            steps=steps,
            aof="everysec",
            cpu_s_per_1000_steps=2 / steps + 0.5,
            round_trips_per_step=5 / steps + 1,
            aof_bytes_per_step=6000 / steps + 700,
        )
        for steps in (10, 200)
    )
    row = fixed_per_job(short, long)
    assert (row.cpu_ms_per_job, row.round_trips_per_job, row.aof_bytes_per_job) == (2.0, 5.0, 6000)
    assert with_ratios(row, ROWS[0]).cpu_ratio == 20.0
