"""`edge doctor` says how a gateway is, to people and programs, and ends in time."""

import json

import pytest

from edge.upkeep import doctor
from edge.upkeep.finding import Finding, Level, failing, ok, warning
from tests.cli.calling import Edge

WELL, SUSPICIOUS, ILL = ok("store", "there"), warning("clock", "fast", "set it"), failing("broker", "gone", "start it")


def finding(monkeypatch: pytest.MonkeyPatch, *found: Finding) -> None:
    async def examine(*_: object) -> list[Finding]:
        return list(found)

    monkeypatch.setattr(doctor, "examine", examine)


@pytest.mark.parametrize(("found", "status"), [((WELL,), 0), ((WELL, SUSPICIOUS), 1), ((ILL, SUSPICIOUS, WELL), 2)])
async def test_the_exit_status_is_that_of_the_worst(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, found: tuple[Finding, ...], status: int
) -> None:
    finding(monkeypatch, *found)
    assert (await edge("doctor")).exit_code == status


async def test_each_finding_is_a_line_and_what_to_do_another(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, WELL, failing("broker", "gone\x1b[2J", "start it"))
    assert (await edge("doctor")).output.splitlines() == [
        "ok       store   there",
        "failing  broker  gone [2J",
        "                 → start it",
    ]


async def test_a_real_gateway_is_examined(edge: Edge) -> None:
    answer = await edge("doctor", "--json")
    told = json.loads(answer.output)
    assert {"settings", "store", "clock", "versions"} <= {each["subject"] for each in told["findings"]}
    assert told["level"] in set(Level)
