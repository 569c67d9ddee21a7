"""The pages while the store stands still: what is not known is not stated."""

import re

import pytest
from msgspec.structs import replace

from edge.features.page.services import WebServices
from edge.foundation.errors import LocalFault
from edge.model.equipment_health import EquipmentHealth
from edge.model.finding import HealthFinding
from edge.model.job_state import Cause
from edge.ports.alarm import ActiveState, AlarmChangeKind
from edge.store import kept_alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.serving import Browser, serving
from tests.features.telemetry.test_page import ALARM
from tests.station.plant import Clock, FakeEquipment, Plant, order, until_true
from tests.store.breaks import break_confirmation

_CLAIMS = re.compile(r"not sent|noch nicht|pas encore", re.IGNORECASE)


async def _send_without_note(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """Send the start of J2 to the tool in the last moment in which the primary is confirmed."""
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await until_true(lambda: any(command.job_id == "J2" for command in tool.commands))
    break_confirmation(plant.store)
    clock.now += 10_000


async def test_command_is_not_called_unsent_while_the_primary_is_not_confirmed(
    services: WebServices, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    """Each card said "not sent to wrench yet" while a majority of the sentinels was away, and the wrench turned."""
    await _send_without_note(plant, tool, clock)
    async with serving(services) as browser:
        alice = await browser.logged_in("alice")
        for language, words, label in (
            ("en", "may have been sent to wrench", "May have been sent"),
            ("de", "vielleicht an wrench gesendet", "Vielleicht gesendet"),
            ("fr", "peut-être envoyé à wrench", "Peut-être envoyée"),
        ):
            for path in ("/", "/job?id=J2"):
                page = (await alice.get(path, accept_language=language)).text
                assert words in page, path
                assert label in page, path
                assert not _CLAIMS.search(page), path
        detail = (await alice.get("/api/v1/jobs/J2")).json
        (waiting,) = detail["waits"]["actions"]
        assert (waiting["sent"], waiting["sending"]) == (True, "may have been sent")
        assert [action["sending"] for action in detail["actions"]] == ["may have been sent"]
        assert "may have been sent" in (await alice.get("/api/v1/jobs/J2/chart.svg")).text


_SAFE = EquipmentHealth(name="wrench", kind="mqtt", connected=True)
_REASON = "no majority of the sentinels confirms 127.0.0.1:6379"


def _standing(services: WebServices) -> WebServices:
    """Return the services of a gateway whose store accepts no work."""
    status = replace(services.status(()), problems=f"store unavailable: {_REASON}", work_waits=_REASON)
    return replace(services, status=lambda _: status, equipment=lambda: (_SAFE,))


async def _raise(plant: Plant, name: str, active: ActiveState) -> None:
    alarm = replace(ALARM, id=name, subject=name, message={"en": f"{name} alarm"}, severity=800, active=active)
    changes = [AlarmChange(alarm, AlarmChangeKind.RAISED)]
    await plant.store.commit(kept_alarms.save(plant.store.keys, await kept_alarms.load(plant.store), changes))


async def _headline(visitor: Browser, language: str = "en") -> str:
    page = (await visitor.get("/", accept_language=language)).text
    return page[page.index('data-part="status"') : page.index('class="columns"')]


async def test_standstill_of_the_store_goes_before_old_alarms(services: WebServices, plant: Plant) -> None:
    """A returned alarm of the failover before was the red headline, and nothing said that work waits now."""
    async with serving(_standing(services)) as browser:
        eve = await browser.logged_in("eve")
        await _raise(plant, "past", ActiveState.INACTIVE)
        headline = await _headline(eve)
        assert f"<strong>Work waits:</strong><span>{_REASON}. Call maintenance if it lasts.</span>" in headline
        assert '<a class="button" href="/gateway">' in headline
        assert headline.count('class="status') == 2
        assert 'class="status bad"' in headline
        assert "past alarm" not in headline
        assert "store unavailable" not in headline
        assert (await eve.get("/api/v1/attention")).json["level"] == "bad"
        await _raise(plant, "door", ActiveState.ACTIVE)
        headline = await _headline(eve)
        assert headline.index("Work waits:") < headline.index("door alarm")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", f"Station wartet:</strong><span>{_REASON}. Rufen Sie die Instandhaltung, wenn es anhält."),
        ("fr", f"Travail en attente :</strong><span>{_REASON}. Appelez la maintenance si cela dure."),
    ],
)
async def test_standstill_is_named_in_the_language_of_the_reader(
    services: WebServices, language: str, text: str
) -> None:
    async with serving(_standing(services)) as browser:
        assert text in await _headline(await browser.logged_in("eve"), language)


async def test_page_that_is_opened_while_the_store_is_away_opens_by_itself(services: WebServices, plant: Plant) -> None:
    """It stayed an error page until a person touched it, and asked for a Redis server to be started."""
    async with serving(services) as browser:
        alice = await browser.logged_in("alice")
        plant.store.end("another server is the primary")
        answer = await alice.get("/jobs")
        assert answer.status == 503
        assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in answer.text
        assert "This page opens by itself as soon as the store answers." in answer.text


async def test_page_of_a_process_that_has_ended_does_not_blame_the_store(services: WebServices) -> None:
    """It stated that it opens as soon as the store answers, and called the examination again every 3 s."""

    async def examine() -> tuple[HealthFinding, ...]:
        raise LocalFault("edge doctor returned no findings", "Call it in a terminal: edge doctor")

    async with serving(replace(services, tools=replace(services.tools, examine=examine))) as browser:
        engineer = await browser.logged_in("max")
        answer = await engineer.get("/doctor")
        assert answer.status == 503
        assert "edge doctor returned no findings" in answer.text
        assert "as soon as the store answers" not in answer.text
        assert "http-equiv" not in answer.text
        assert "data-waits" not in answer.text
        failure = await engineer.get("/api/v1/doctor")
        assert (failure.status, failure.json["kind"]) == (503, "local_fault")
