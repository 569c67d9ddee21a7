"""A real browser at a gateway process: an operator answers, acknowledges and stops; the page follows other clients."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.features.page.chromium import Chromium, chromium
from tests.outside.conftest import Plant
from tests.outside.servers import wait_for
from tests.outside.test_decisions import _edge
from tests.outside.test_prompts import CHOOSING, PEOPLE, asking, resolved_by, result, wait_for_prompt
from tests.outside.test_station_page import PASSWORD, Page
from tests.outside.test_station_page import page as page  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow

ASKED = "document.querySelector('.asked button')"
ACKNOWLEDGE = ".alarm button[data-post$='/acknowledge']"
STOP = "button[data-post$='/jobs/J3/stop']"
IS_CALM = "document.title.startsWith('Station') && document.querySelector('link[rel=icon]').href.endsWith('/icon.svg')"
WARNS = "document.title.startsWith('(1) ') && document.querySelector('link[rel=icon]').href.endsWith('/icon-warn.svg')"


NO_CLOCK_ALARM = {
    "id": "gateway.clock_unsynchronised",
    "kind": "limit",
    "tag": "gateway.clock_synchronised",
    "limits": {"low": {"at": -1, "severity": 300}},
}
"""Replaces the built-in rule: machines of tests have no time server, and the alarm would come in between."""


@pytest.fixture
def further_settings(tmp_path: Path) -> str:
    """The people at the station, and no alarm but those of the test."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([NO_CLOCK_ALARM]))
    return f'{PEOPLE}[telemetry]\nrules = "{rules}"\n'


def error_of(plant: Plant, job_id: str) -> Any:
    """Return why a job did not complete, as the MES has it."""
    return result(plant, job_id)["Error"]["Value"]


async def test_operator_answers_acknowledges_and_stops_in_a_browser(plant: Plant, page: Page) -> None:
    plant.mes.configure(recipe=CHOOSING)
    async with chromium() as screen:
        await screen.log_in(page.origin, "alice", PASSWORD)
        await answer(screen, plant)
        await acknowledge(screen, plant)
        await stop(screen, plant)
        assert screen.faults == []
    records = json.loads(_edge(plant, "audit", "list", "--last", "50", "--json").stdout)
    called = [record["action"].casefold() for record in records if record["user"] == "alice"]
    assert called == ["login", "prompts answer", "acknowledge", "stop"]


async def answer(screen: Chromium, plant: Plant) -> None:
    """Answer the prompt of a job that starts while the page is open."""
    assert plant.mes.start_job("J1").status == 1
    await screen.until(ASKED)
    assert "Seat the cable" in await screen.run("document.querySelector('.asked').innerText")
    await screen.click(".asked button[data-given*=defective]")
    await screen.until(f"!{ASKED}")
    plant.mes.wait_for_state("J1", "Ended")
    assert result(plant)["ask"]["Subparameters"] == [{"ID": "choice", "Value": "defective"}]
    assert resolved_by(plant) == ["alice"]


async def acknowledge(screen: Chromium, plant: Plant) -> None:
    """Acknowledge the alarm about a job whose tool fails."""
    plant.mes.configure("WM-1")
    plant.wrench.holds = True
    assert plant.mes.start_job("J2").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    failed = {"causationid": plant.wrench.starts()[0], "mdcserrorkind": "failed", "mdcserrormessage": "torque low"}
    plant.wrench.client.publish(f"{plant.wrench.topic}/answers", "", failed, confirm=None)
    await screen.until(f'document.querySelector("{ACKNOWLEDGE}")')
    assert "torque low" in await screen.run("document.querySelector('.alarm').innerText")
    await screen.click(ACKNOWLEDGE)
    await screen.until(f'!document.querySelector("{ACKNOWLEDGE}")')
    raised = json.loads(plant.gateway.cli("alarms", "list", "--json"))
    assert [alarm["id"] for alarm in raised if alarm["state"] == "unacknowledged"] == []


async def stop(screen: Chromium, plant: Plant) -> None:
    """Stop a job after the question of the page; the MES has who did it, and where."""
    plant.wrench.release()
    plant.mes.configure(recipe=CHOOSING)
    assert plant.mes.start_job("J3").status == 1
    await screen.click(STOP)
    await screen.until("document.querySelector('#ask[open]')")
    await screen.click("#ask-yes")
    await screen.until("document.querySelector('.rows:has(.outcome-stopped)')?.innerText.includes('alice')")
    assert error_of(plant, "J3") == "stopped by alice at the station page"


async def test_prompt_that_another_client_answers_leaves_the_open_page(plant: Plant, page: Page) -> None:
    plant.mes.configure(recipe=asking("confirm"))
    async with chromium() as screen:
        await screen.log_in(page.origin, "alice", PASSWORD)
        await screen.until(IS_CALM)
        await screen.run("window.isSamePage = true")
        assert plant.mes.start_job("J1").status == 1
        await screen.until(f"{ASKED} && {WARNS}")
        assert _edge(plant, "prompts", "answer", wait_for_prompt(plant)["id"]).returncode == 0
        await screen.until(f"!{ASKED} && {IS_CALM}")
        assert await screen.run("window.isSamePage")
        # A person who looks at another page sees in its title and icon that the station needs them.
        await screen.go(f"{page.origin}/alarms")
        assert plant.mes.start_job("J2").status == 1
        await screen.until(WARNS.replace("(1) ", "(1) Alarms"))
        wait_for(lambda: _edge(plant, "prompts", "answer", "J2").returncode == 0, "the prompt is answered")
        await screen.until(IS_CALM.replace("Station", "Alarms"))
        assert screen.faults == []
