"""The lease of a task ends when it was not renewed while the worker watched, whatever the clock of the server shows."""

import pytest

from edge.features.flows.task_leases import RELEASED_MS, PendingTask, TaskLeases, pending_tasks

LEASE_S = 30.0


def ends(looks: list[tuple[float, str, float]]) -> bool:
    """Return whether a lease has ended at the last of some looks: instant, worker and idle time, in seconds."""
    now, found = 0.0, []
    leases = TaskLeases(int(LEASE_S * 1000), lambda: now)
    for now, consumer, idle_s in looks:  # noqa: B007 - the clock of the leases
        found = leases.expired("site.check", [PendingTask("1-0", consumer, round(idle_s * 1000))])
    return bool(found)


def steady(until: int, idle: float = 0.0, jump: float = 0.0, at: int = 10) -> list[tuple[float, str, float]]:
    """Return looks each five seconds at a task that is not renewed; at an instant the clock of the server jumps."""
    return [(now, "w", idle + now + (jump if now >= at else 0.0)) for now in range(0, until + 1, 5)]


@pytest.mark.parametrize(
    ("looks", "ended"),
    [
        (steady(25), False),
        (steady(30), True),
        (steady(0, idle=3600.0), False),
        (steady(25, jump=60.0), False),
        (steady(30, jump=60.0), True),
        (steady(35, idle=90.0, jump=-60.0), False),
        (steady(40, idle=90.0, jump=-60.0), True),
        ([(now, "w", 0.2) for now in range(0, 120, 5)], False),
        ([(now, "w", now % 10) for now in range(0, 120, 5)], False),
        ([*steady(25), (30, "v", 1.0)], False),
        ([(0, "w", 0.0), (600, "w", 600.0)], True),
        ([(0, "w", 0.0), (600, "w", 3.0)], False),
        ([(0, "w", RELEASED_MS / 1000)], True),
    ],
    ids=[
        "shorter than the lease",
        "not renewed for the lease",
        "first look",
        "server a minute ahead after a failover",
        "server a minute ahead, then not renewed",
        "server a minute behind after a failover",
        "server a minute behind, then not renewed",
        "renewed in step with the looks",
        "renewed each ten seconds",
        "taken by another worker",
        "not renewed while the worker was busy",
        "renewed while the worker was busy",
        "released",
    ],
)
def test_lease_ends_without_a_renewal_only(looks: list[tuple[float, str, float]], *, ended: bool) -> None:
    assert ends(looks) is ended


def test_tasks_that_are_done_are_forgotten() -> None:
    now = 0.0
    leases = TaskLeases(1000, lambda: now)
    task = PendingTask("1-0", "w", 0)
    leases.expired("a", [task])
    leases.expired("a", [])
    now = 60.0
    assert leases.expired("a", [task]) == []
    assert leases.expired("b", [task]) == []


def test_reply_of_the_server_is_read() -> None:
    assert pending_tasks([["1-0", "w", 1500, 2]]) == [PendingTask("1-0", "w", 1500)]
