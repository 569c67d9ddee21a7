"""The level of a gateway is the level of its worst finding."""

import pytest

from edge.model.finding import HealthFinding, Level, failing, ok, warning, worst

WELL, SUSPICIOUS, ILL = ok("a", "there"), warning("b", "slow", "wait"), failing("c", "gone", "fetch it")


@pytest.mark.parametrize(
    ("findings", "level"),
    [
        ([], Level.OK),
        ([WELL, WELL], Level.OK),
        ([WELL, SUSPICIOUS, WELL], Level.WARNING),
        ([SUSPICIOUS, ILL, WELL], Level.FAILING),
    ],
)
def test_overall_level_is_that_of_the_worst_finding(findings: list[HealthFinding], level: Level) -> None:
    assert worst(findings) is level


def test_finding_with_a_fault_has_advice() -> None:
    assert (SUSPICIOUS.advice, ILL.advice, WELL.advice) == ("wait", "fetch it", "")
