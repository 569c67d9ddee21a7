"""Lines of a status name schedule, counts, nodes and progress."""

from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.flows.cli.stored_flows import cycle_lines, flow_lines, progress_lines
from edge.features.flows.public_flow import PublicCycle, PublicFlow, PublicFlowDetail, PublicNode

NODE = PublicNode(
    node="",
    status="running",
    attempts=1,
    progress=0,
    worker="",
    message="",
    reason="",
    output=None,
    started_at=None,
    ended_at=None,
)
FLOW = PublicFlow(
    id="f",
    status="running",
    reason="",
    last_cycle=3,
    last_at=None,
    in_cycle=False,
    next_at="1970-01-01T00:02:00.000Z",
    created_at="1970-01-01T00:00:00.000Z",
    ended={"failed": 2},
    missed=1,
)


def cycle(ended_at: str | None = None, status: str = "running", **tasks: dict[str, Any]) -> PublicCycle:
    counts = {"total": len(tasks), "completed": 0, "failed": 0, "terminated": 0, "skipped": 0, "running": 0}
    for task in tasks.values():
        counts[task["status"]] += 1
    return PublicCycle(
        number=3,
        status=status,
        at="1970-01-01T00:01:00.000Z",
        started_at="1970-01-01T00:01:00.000Z",
        ended_at=ended_at,
        owner="edge",
        nodes=tuple(replace(NODE, node=name, **task) for name, task in tasks.items()),
        statistics=counts,
    )


def test_node_in_a_worker_has_its_own_progress_bar() -> None:
    detect = {"status": "running", "worker": "w1", "progress": 35, "message": "looking"}
    found = progress_lines(cycle(a={"status": "completed"}, detect=detect))
    assert found == [
        "cycle 3 [##########----------] 1/2 detect",
        "  detect [#######-------------] 35 % looking (worker w1)",
    ]


def test_cycle_that_has_ended_shows_its_state() -> None:
    ended = cycle(status="failed", a={"status": "failed"})
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
    detail = PublicFlowDetail(flow=FLOW, components=(), entry_nodes=(), order=(), cycle=None, cycles=(), config=config)
    lines = list(flow_lines(detail))
    assert lines == [
        "f: running",
        f"schedule: {schedule}; next cycle: 1970-01-01 00:02:00 UTC",
        "cycles: 2 failed; 1 missed",
    ]


def test_nodes_show_their_reason_or_output() -> None:
    ended = cycle(
        "1970-01-01T00:01:01.500Z",
        a={"status": "failed", "reason": "no"},
        b={"status": "completed", "output": [1]},
    )
    lines = list(cycle_lines(ended))
    assert lines == [
        "cycle 3 at 1970-01-01 00:01:00 UTC: running, run by edge, took 1.5 s",
        "  a  failed      1  no",
        "  b  completed   1  [1]",
        "  2 nodes: 1 completed, 1 failed",
    ]


def test_long_output_is_cut() -> None:
    long = cycle(a={"status": "completed", "output": "x" * 500})
    assert all(len(line) < 150 for line in cycle_lines(long))
