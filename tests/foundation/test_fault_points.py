"""Only an armed fault point kills the process, at the armed pass."""

import subprocess
import sys

import pytest

from edge.foundation.fault_points import FaultPoint, fault_point_of

PROGRAM = (
    "from edge.foundation.fault_points import FaultPoint, fault_point\n"
    "for n in range(5):\n    print(n, flush=True)\n    fault_point(FaultPoint.{})"
)


def passes(armed: str, point: str) -> tuple[int, int]:
    """Pass a point five times; return how often the process reached it, and its exit status."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(point)], env={"EDGE_FAULT": armed}, capture_output=True, check=False
    )
    return len(ended.stdout.split()), ended.returncode


@pytest.mark.parametrize("point", FaultPoint)
def test_process_is_killed_at_the_armed_pass_of_the_armed_point(point: FaultPoint) -> None:
    assert passes(f"{point}:3", point.name) == (3, -9)


def test_process_passes_points_that_are_not_armed() -> None:
    assert passes("sent:3", "COMMITTED") == (5, 0)
    assert passes("", "SENT") == (5, 0)


def test_an_unknown_point_is_reported() -> None:
    with pytest.raises(ValueError, match="lunch"):
        fault_point_of("lunch:1")
