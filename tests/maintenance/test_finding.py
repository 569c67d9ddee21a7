"""How well a gateway is, is how well its worst part is."""

import pytest

from edge.maintenance.finding import HealthFinding, Level, failing, ok, warning, worst

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
def test_the_worst_finding_counts(findings: list[HealthFinding], level: Level) -> None:
    assert worst(findings) is level


def test_what_is_not_well_states_what_to_do() -> None:
    assert (SUSPICIOUS.advice, ILL.advice, WELL.advice) == ("wait", "fetch it", "")
