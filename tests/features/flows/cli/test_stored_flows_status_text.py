"""Lines of a status name schedule, counts, nodes and progress."""

from typing import Any

import pytest

from edge.features.flows.cli.stored_flows import cycle_lines, flow_lines, progress_lines

TASK = {"output": None, "reason": None, "attempts": 1, "worker": None, "progress": 0, "message": None}


def cycle(**tasks: dict[str, Any]) -> dict[str, Any]:
    counts = {"total": len(tasks), "completed": 0, "failed": 0, "terminated": 0, "skipped": 0, "running": 0}
    for task in tasks.values():
        counts[task["status"]] += 1
    facts = {"cycle": 3, "at": 60_000, "status": "running", "start_time": 60_000, "end_time": None, "owner": "edge"}
    return {**facts, "nodes": {name: {**TASK, **task} for name, task in tasks.items()}, "statistics": counts}


def test_node_in_a_worker_has_its_own_progress_bar() -> None:
    detect = {"status": "running", "worker": "w1", "progress": 35, "message": "looking"}
    found = progress_lines(cycle(a={"status": "completed"}, detect=detect))
    assert found == [
        "cycle 3 [##########----------] 1/2 detect",
        "  detect [#######-------------] 35 % looking (worker w1)",
    ]


def test_cycle_that_has_ended_shows_its_state() -> None:
    ended = {**cycle(a={"status": "failed"}), "status": "failed"}
    assert progress_lines(ended) == ["cycle 3 [####################] 1/1 failed"]


@pytest.mark.parametrize(
    ("config", "schedule"),
    [
        ({"interval_seconds": 0}, "once"),
        ({"interval_seconds": 0.5}, "every 0.5 s"),
        ({"cron": "0 6 * * *", "time_zone": "Europe/Berlin"}, "cron 0 6 * * *, Europe/Berlin"),
        ({"shifts": ["06:00", "14:00"]}, "shifts 06:00, 14:00, UTC"),
    ],
)
def test_status_line_names_the_schedule(config: dict[str, Any], schedule: str) -> None:
    flow = {"id": "f", "status": "running", "reason": None, "ended": {"failed": 2}, "missed": 1, "structure": None}
    lines = list(flow_lines({**flow, "config": config, "next_execution": 120_000}))
    assert lines == [
        "f: running",
        f"schedule: {schedule}; next cycle: 1970-01-01 00:02:00 UTC",
        "cycles: 2 failed; 1 missed",
    ]


def test_nodes_show_their_reason_or_output() -> None:
    lines = list(
        cycle_lines(
            {
                **cycle(a={"status": "failed", "reason": "no"}, b={"status": "completed", "output": [1]}),
                "end_time": 61_500,
            }
        )
    )
    assert lines == [
        "cycle 3 at 1970-01-01 00:01:00 UTC: running, run by edge, took 1.5 s",
        "  a  failed      1  no",
        "  b  completed   1  [1]",
        "  2 nodes: 1 completed, 1 failed",
    ]


def test_long_output_is_cut() -> None:
    long = cycle(a={"status": "completed", "output": "x" * 500})
    assert all(len(line) < 150 for line in cycle_lines(long))
