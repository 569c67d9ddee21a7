"""What needs a person: counts, colours, and the Station page with its questions as buttons."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.access.login import Users
from edge.features.page.attention import URGENT_SEVERITY, attention_of, by_need, headline_of, needs_look
from edge.features.page.models import Attention, AttentionLevel
from edge.features.page.services import WebServices
from edge.model.equipment_health import EquipmentHealth, OpenSafing
from edge.model.job_state import Cause, JobState
from edge.ports.alarm import AckState, ActiveState, AlarmChangeKind, PublicAlarm, Shelving, public_alarm
from edge.station.equipment import OutcomeUnknown
from edge.store import kept_alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.serving import Browser, services_of, serving
from tests.features.telemetry.test_page import ALARM
from tests.station.plant import FakeEquipment, Plant, action, linear, order, until_true

SAFE = EquipmentHealth(name="camera", kind="mqtt", connected=False)
UNSAFE = replace(SAFE, name="wrench", open_safing=(OpenSafing(what="stop", since=1),), safing=1)
GOOD, WARN, BAD = AttentionLevel.GOOD, AttentionLevel.WARN, AttentionLevel.BAD


def _alarm(severity: int = 500, **members: Any) -> PublicAlarm:
    return replace(public_alarm(replace(ALARM, severity=severity)), **members)


def _attention(
    decisions: int = 0,
    asks: int = 0,
    equipment: Sequence[EquipmentHealth] = (SAFE,),
    alarms: Sequence[PublicAlarm] = (),
    *,
    has_problem: bool = False,
    is_waiting: bool = False,
) -> Attention:
    return attention_of(
        decisions=decisions,
        asks=asks,
        equipment=equipment,
        alarms=alarms,
        has_problem=has_problem,
        is_waiting=is_waiting,
    )


@pytest.mark.parametrize(
    ("attention", "level", "station", "alarms"),
    [
        (_attention(), GOOD, (0, GOOD), (0, GOOD)),
        (_attention(decisions=2), WARN, (2, WARN), (0, GOOD)),
        (_attention(asks=1, decisions=1), WARN, (2, WARN), (0, GOOD)),
        (_attention(has_problem=True), WARN, (0, GOOD), (0, GOOD)),
        (_attention(has_problem=True, is_waiting=True), BAD, (0, GOOD), (0, GOOD)),
        (_attention(alarms=[_alarm(URGENT_SEVERITY - 1)]), WARN, (0, GOOD), (1, WARN)),
        (_attention(alarms=[_alarm(URGENT_SEVERITY)]), BAD, (0, GOOD), (1, BAD)),
        (_attention(equipment=[SAFE, UNSAFE]), BAD, (1, BAD), (0, GOOD)),
        (_attention(alarms=[_alarm(900, shelved=True)]), GOOD, (0, GOOD), (0, GOOD)),
        (_attention(alarms=[_alarm(900, active=False, needs_acknowledge=False)]), GOOD, (0, GOOD), (0, GOOD)),
        (_attention(alarms=[_alarm(900, needs_acknowledge=False)]), GOOD, (0, GOOD), (0, GOOD)),
    ],
)
def test_banner_is_green_only_when_nothing_needs_a_person(
    attention: Attention,
    level: AttentionLevel,
    station: tuple[int, AttentionLevel],
    alarms: tuple[int, AttentionLevel],
) -> None:
    assert attention.level is level
    assert (attention.station, attention.station_level) == station
    assert (attention.alarms, attention.alarms_level) == alarms


@given(
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 1000), st.booleans()), max_size=4),
    st.booleans(),
)
def test_level_follows_from_the_counts(
    decisions: int,
    asks: int,
    is_unsafe: bool,  # noqa: FBT001
    alarms: list[tuple[int, bool]],
    has_problem: bool,  # noqa: FBT001
) -> None:
    raised = [_alarm(severity, suppressed=is_suppressed) for severity, is_suppressed in alarms]
    attention = _attention(decisions, asks, (UNSAFE,) if is_unsafe else (SAFE,), raised, has_problem=has_problem)
    shown = [alarm for alarm in raised if needs_look(alarm)]
    is_urgent = any(alarm.severity >= URGENT_SEVERITY for alarm in shown)
    assert (attention.level is BAD) == (is_unsafe or is_urgent)
    assert (attention.level is GOOD) == (not (attention.station or attention.alarms or has_problem))


def test_red_banner_names_the_alarm_that_makes_it_red() -> None:
    """It named an active alarm of low severity, and the one of high severity that had returned came after it."""
    low, past, seen = _alarm(300), _alarm(700, active=False), _alarm(900, needs_acknowledge=False)
    assert by_need([seen, low, past]) == [past, low, seen]
    assert by_need([_alarm(700, active=False), _alarm(700)])[0].active


async def _raise(plant: Plant, severity: int, **members: Any) -> None:
    change = AlarmChange(replace(ALARM, severity=severity, **members), AlarmChangeKind.RAISED)
    await plant.store.commit(kept_alarms.save(plant.store.keys, await kept_alarms.load(plant.store), [change]))


def _message(name: str) -> dict[str, Any]:
    return {"id": name, "subject": name, "message": {"en": f"{name} is hot"}}


async def test_headline_states_no_past_alarm_as_present(services: WebServices, plant: Plant) -> None:
    away = replace(SAFE, connected=True)
    async with serving(replace(services, equipment=lambda: (away,))) as browser:
        eve = await browser.logged_in("eve")

        async def headline() -> str:
            page = (await eve.get("/")).text
            return page[page.index('data-part="status"') : page.index('class="columns"')]

        await _raise(plant, 600, **_message("press"), active=ActiveState.INACTIVE)
        assert "press is hot · returned, unacknowledged" in await headline()
        await _raise(plant, 500, **_message("oven"))
        await _raise(plant, 900, **_message("door"), acknowledgement=AckState.ACKNOWLEDGED)
        await _raise(plant, 650, **_message("lamp"), shelving=Shelving(by="max", at=1))
        assert "(2)</strong><span>oven is hot</span>" in await headline()
        page = (await eve.get("/")).text
        assert re.findall(r"(\w+) is hot", page[page.index('class="alarms') :])[:2] == ["oven", "press"]


async def test_alarm_hides_no_request_of_the_station(services: WebServices, plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("helped", linear(action("a", "one")) | {"interventions": ["retry", "skip"]})
    await plant.order(Cause.STORE_AND_START, order("J2", "helped"))
    await until_true(lambda: len(tool.commands) == 2)
    await plant.answer(tool.commands[1], error="torque low")
    safe = replace(SAFE, connected=True)
    for equipment, expected in ((safe, ["Needs you (1)", "press is hot"]), (UNSAFE, ["wrench", "Needs you (1)"])):
        async with serving(replace(services, equipment=lambda equipment=equipment: (equipment,))) as browser:
            await _raise(plant, 900, **_message("press"))
            eve = await browser.logged_in("eve")
            page = (await eve.get("/")).text
            banner = page[page.index('data-part="status"') : page.index('class="columns"')]
            assert banner.index(expected[0]) < banner.index(expected[1])
            assert "torque low" in banner
            assert "press is hot" in banner


def test_alarm_about_a_job_that_waits_is_not_named_twice() -> None:
    of_job, other = _alarm(700, rule="gateway.job_awaits_person"), _alarm(700, id="a2")
    waits, idle = _attention(decisions=1, alarms=[of_job]), _attention(alarms=[of_job])
    assert headline_of([of_job], waits) is None
    assert headline_of([of_job], idle) == of_job
    assert headline_of([of_job, other], waits) == other


async def test_navigation_title_and_icon_show_what_needs_a_person(browser: Browser, plant: Plant) -> None:
    eve = await browser.logged_in("eve")
    await _raise(plant, 300)
    page = (await eve.get("/recipes")).text
    # The wrench of the plant may be active still.
    assert "<title>(2) Recipes" in page
    assert 'href="/static/icon-bad.svg"' in page
    assert '<span class="count bad" data-count="station">1</span>' in page
    assert '<span class="count warn" data-count="alarms">1</span>' in page
    shown = (await eve.get("/api/v1/attention")).json
    assert shown == {"level": "bad", "station": 1, "station_level": "bad", "alarms": 1, "alarms_level": "warn"}
    assert ALARM.active is ActiveState.ACTIVE
    assert ALARM.acknowledgement is AckState.UNACKNOWLEDGED


async def test_failed_action_has_its_buttons_on_the_station_page(
    browser: Browser, plant: Plant, tool: FakeEquipment
) -> None:
    titled = action("a", "one") | {"title": {"en": "Tighten the bolts", "de": "Schrauben anziehen"}}
    await plant.teach("helped", linear(titled) | {"interventions": ["retry", "skip"], "title": {"de": "Achse"}})
    await plant.order(Cause.STORE_AND_START, order("J2", "helped"))
    await until_true(lambda: len(tool.commands) == 2)
    await plant.answer(tool.commands[1], error="torque low")
    alice, eve = await browser.logged_in("alice"), await browser.logged_in("eve")
    page = (await alice.get("/", accept_language="de")).text
    assert "<strong>Schrauben anziehen</strong><br>fehlgeschlagen: torque low" in page
    assert page.count('data-intervene="/api/v1/jobs/J2/intervene"') == 2
    assert page.index("/job?id=J2") < page.index("/job?id=J1")
    assert '<span class="detail grow">Achse</span>' in page
    assert "data-intervene=" not in (await eve.get("/")).text


async def test_unknown_outcome_is_decided_on_the_station_page(
    browser: Browser, plant: Plant, tool: FakeEquipment
) -> None:
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "power lost"))
    alice = await browser.logged_in("alice")
    page = (await alice.get("/")).text
    for resolution in ("done", "failed", "repeat"):
        assert f'data-resolve="/api/v1/jobs/J1/resolve" data-resolution="{resolution}" data-action="a"' in page


async def test_formula_is_one_click_away_and_never_in_view(browser: Browser) -> None:
    alice = await browser.logged_in("alice")
    page = (await alice.get("/")).text
    card = page[page.index('id="running-title"') : page.index('id="alarms-title"')]
    shown, hidden = card.split("<details", 1)
    assert "wrench" in shown
    assert not {"<code>", "→", "=="} & {mark for mark in ("<code>", "→", "==") if mark in shown}
    assert "<code>" in hidden


async def test_skipped_action_is_shown_with_the_name_of_the_person(browser: Browser, plant: Plant) -> None:
    await plant.teach("helped", linear(action("a", "one")) | {"interventions": ["skip"]})
    await plant.order(Cause.STORE_AND_START, order("J2", "helped"))
    await plant.until_state("J2", JobState.RUNNING)
    alice = await browser.logged_in("alice")
    body = {"kind": "skip", "action": "a", "reason": "no bolt left"}
    assert (await alice.post("/api/v1/jobs/J2/intervene", body)).status == 200
    await plant.until_state("J2", JobState.ENDED)
    shown = (await alice.get("/api/v1/jobs/J2")).json
    assert (shown["job"]["outcome"], shown["job"]["verdict"]) == ("not_ok", "not_ok")
    page = (await alice.get("/job?id=J2")).text
    assert "skipped by alice: no bolt left" in page
    assert "✗</span> Completed, not OK" in page


async def test_alarm_and_job_lead_a_stranger_to_the_login(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users, is_kiosk=True)) as browser:
        host = f"localhost:{browser.port}"
        await _raise(plant, 300)
        page = (await browser.get("/", host=host)).text
        job = (await browser.get("/job?id=J1", host=host)).text
    assert '<a class="button" href="/login">Log in to acknowledge</a>' in page
    assert '<a class="button" href="/login">Log in to operate</a>' in page
    assert '<a class="button" href="/login?next=%2Fjob%3Fid%3DJ1">Log in to operate</a>' in job
