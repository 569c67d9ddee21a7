"""`edge maintenance` switches the mode at the store and shows its message in the language of the operator."""

import json
from pathlib import Path

import pytest

from edge.model.job_state import Cause
from edge.store import audit
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.station.plant import Plant, order


@pytest.fixture(autouse=True)
def _in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")


async def test_mode_is_switched_shown_and_recorded(edge: Edge, store: Store) -> None:
    on = await edge("maintenance", "on", "--message", "new cable", "--until", "2099-01-01T18:00", "--now")
    assert on.exit_code == 0, on.output
    assert "maintenance is on for every gateway" in on.output
    assert "new cable" in on.output
    shown = json.loads((await edge("maintenance", "show", "--json")).output)
    assert (shown["modes"]["*"]["kind"], shown["modes"]["*"]["on"]) == ("now", True)
    assert shown["running_jobs"] == []
    assert (await edge("maintenance", "off")).output == "maintenance is off\n"
    actions = [json.loads(sealed_record.text)["action"] async for sealed_record in audit.read_all(store)]
    assert actions == ["maintenance on", "maintenance off"]


async def test_message_is_in_the_language_of_the_operator(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await edge("maintenance", "text", "de:Cell", "Umbau")).exit_code == 0
    await edge("maintenance", "on", "--message", "{$Cell}", "--gateway", "edge")
    monkeypatch.setenv("LC_ALL", "de_AT.UTF-8")
    shown = (await edge("maintenance", "show")).output
    assert "Umbau" in shown
    assert "gateway edge" in shown
    await edge("maintenance", "text", "de:Cell", "--delete")
    assert "de:Cell" not in json.loads((await edge("maintenance", "text", "--json")).output)


@pytest.mark.usefixtures("plant")
async def test_commands_of_jobs_are_refused_with_the_message(edge: Edge) -> None:
    given = json.dumps({"JobOrderID": "J1", "WorkMasterID": [{"ID": "linear"}]})
    await edge("maintenance", "on", "--message", "new cable")
    refused = await edge("jobs", "store", "-", "--start", given=given)
    assert refused.exit_code == 1
    assert "new cable" in refused.output
    assert order("J1").job_order_id not in (await edge("jobs", "list")).output


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("on", "--until", "soon"), 2),
        (("on", "--until", "25:61"), 2),
        (("on", "--until", "2001-01-01T00:00"), 1),
        (("on", "--message", "x" * 1001), 1),
        (("on", "--wait", "-1"), 2),
        (("text", "de Cell", "x"), 2),
        (("text", "Cell"), 2),
    ],
)
async def test_wrong_arguments_do_not_change_the_maintenance_mode(
    edge: Edge, arguments: tuple[str, ...], status: int
) -> None:
    assert (await edge("maintenance", *arguments)).exit_code == status
    assert (await edge("maintenance", "show")).output == "maintenance is off\n"


async def test_upgrade_drains_this_gateway_only_if_the_setting_is_on(edge: Edge, settings_file: Path) -> None:
    assert (await edge("maintenance", "on", "--upgrade")).exit_code == 0
    assert (await edge("maintenance", "show")).output == "maintenance is off\n"
    with settings_file.open("a") as settings:
        settings.write("\n[maintenance]\ndrain_before_upgrade = 5\n")
    assert (await edge("maintenance", "on", "--upgrade")).exit_code == 0
    assert "gateway edge" in (await edge("maintenance", "show")).output


async def test_wait_ends_with_status_1_while_a_job_runs(edge: Edge, plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    ended = await edge("maintenance", "on", "--wait", "0.1")
    assert ended.exit_code == 1
    assert "1 running job: J1" in ended.output
