"""The shift of an operator at a panel of 800 x 480, by mouse, by touch and by keyboard: answer, enter, alarm, stop."""

from pathlib import Path

import pytest

from edge.access.login import Users
from edge.features.prompts.answering import PromptContext, Prompts
from edge.model.job_state import JobState
from edge.ports.alarm import AlarmChangeKind
from edge.station.active_runs import ActiveRuns
from edge.station.stored_job import find
from edge.store import kept_alarms as alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.conftest import users  # noqa: F401 - a fixture
from tests.features.page.serving import services_of, serving
from tests.features.page.test_caller_signatures import PANELS
from tests.features.page.ways import WAYS, act, reach
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, ENTER, prompt
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import SCOPE, Plant

pytestmark = pytest.mark.long

FIELDS = {"mass": "5.5", "serial": "S1"}
STOP = "[data-hold][data-post$='/stop']"


async def enter(screen: Chromium, way: str, name: str, text: str) -> None:
    """Enter a value: with the keys of the screen, or with the keyboard."""
    field = f"input[name={name}]"
    if way == "keyboard":
        await reach(screen, field)
        await screen.type(text)
        return
    if not await screen.run(f"document.activeElement?.matches({field!r})"):
        await act(screen, way, field)
        await screen.until("document.querySelector('.keypad')")
    for key in text:
        if key == "S":
            await act(screen, way, ".keypad [data-key=shift]")
        if key.isdecimal() and name == "serial":
            await act(screen, way, ".keypad [data-key=signs]")
        await act(screen, way, f".keypad [data-key='{key}']")
    await act(screen, way, ".keypad [data-key=done]")


@pytest.mark.parametrize("way", WAYS)
async def test_shift_of_an_operator(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
    way: str,
) -> None:
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    services = services_of(plant, users, ports={"prompts": port}, panels=PANELS, most_requests=10_000)
    async with serving(services) as browser, chromium() as screen:
        await screen.show(800, 480, language="de")
        await screen.log_in(browser.origin, "alice", PASSWORD)
        await ask(plant, "J1", CHOOSE)
        await act(screen, way, ".asked button.primary")
        await screen.until("!document.querySelector('.asked')")
        assert (await plant.job("J1")).status.state is JobState.ENDED

        await ask(plant, "J2", ENTER)
        for name, text in FIELDS.items():
            await enter(screen, way, name, text)
        await act(screen, way, ".keypad [data-key=done]" if way != "keyboard" else ".prompt-form button")
        await screen.until("!document.querySelector('.asked')")
        stored = await find(plant.store, "J2")
        assert stored
        assert stored.run
        assert stored.run.variables == {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S1"}

        kept = await alarms.load(plant.store)
        await plant.store.commit(alarms.save(plant.store.keys, kept, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
        services.events.publish("alarms")
        await act(screen, way, ".alarm button[data-post$='/acknowledge']")
        await screen.until("!document.querySelector('.alarm button[data-post$=\"/acknowledge\"]')")
        assert (await alarms.load(plant.store)).alarms["a1"].by == "alice"

        await ask(plant, "J3", prompt("confirm"))
        match way:
            case "keyboard":
                await reach(screen, STOP)
                await screen.hold_key("Enter", "document.querySelector('.outcome-stopped')")
            case _:
                await screen.touch(STOP)
                await screen.until("document.querySelector('.outcome-stopped')")
                await screen.lift()
        assert "alice" in await screen.run("document.querySelector('.rows:has(.outcome-stopped)').textContent")
        assert screen.faults == []
