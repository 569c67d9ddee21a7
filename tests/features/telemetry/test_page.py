"""Alarms, tags, trends and control charts are shown and changed over the API and on their pages."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

from msgspec.structs import replace

from edge.access.login import Users
from edge.features.telemetry import rule_memory
from edge.features.telemetry.model.rule import ControlChartRule
from edge.features.telemetry.rule_memory import encode_state
from edge.features.telemetry.rules.control_chart import ControlChartState
from edge.features.telemetry.rules.subject_state import SubjectState
from edge.features.telemetry.trends import TrendMemory, Trends
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store.kept_alarms import AlarmChange
from tests.features.page.conftest import browser, clock, plant, services, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of, serving
from tests.station.plant import Plant

ALARM = Alarm(
    id="a1",
    rule="heat",
    subject="wrench",
    active=ActiveState.ACTIVE,
    acknowledgement=AckState.UNACKNOWLEDGED,
    severity=700,
    raised_at=1,
    message={"en": "too hot", "de": "zu heiß"},
)


async def test_alarm_is_acknowledged_and_shelved(browser: Browser, plant: Plant) -> None:
    stored_alarms = await alarms.load(plant.store)
    change = AlarmChange(ALARM, AlarmChangeKind.RAISED)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [change]))
    alice = await browser.logged_in("alice")
    (shown,) = (await alice.get("/api/v1/alarms", accept_language="de-AT")).json["alarms"]
    assert (shown["message"], shown["severity"], shown["needs_acknowledge"]) == ("zu heiß", 700, True)
    (shown,) = (await alice.post("/api/v1/alarms/a1/acknowledge", {"comment": "seen"})).json["alarms"]
    assert (shown["by"], shown["comment"], shown["needs_acknowledge"]) == ("alice", "seen", False)
    (shown,) = (await alice.post("/api/v1/alarms/a1/shelve", {"minutes": 30})).json["alarms"]
    assert shown["state"] == "shelved"
    assert (await alice.post("/api/v1/alarms/none/acknowledge", {})).json["kind"] == "unknown_alarm"


async def test_alarm_has_severity_in_words_and_end_of_shelving(browser: Browser, plant: Plant) -> None:
    stored_alarms = await alarms.load(plant.store)
    change = AlarmChange(replace(ALARM, value=12), AlarmChangeKind.RAISED)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [change]))
    alice = await browser.logged_in("alice")
    page = (await alice.get("/alarms")).text
    assert "high <small>700</small>" in page
    assert "· Value 12" in page
    for body, text in (({"minutes": 30}, r'shelved until <time datetime="[^"]+"'), ({}, "shelved until it ends")):
        await alice.post("/api/v1/alarms/a1/shelve", body)
        for path in ("/alarms", "/"):
            assert re.search(text, (await alice.get(path)).text), (path, text)
        await alice.post("/api/v1/alarms/a1/unshelve", {})


async def test_history_of_alarms_is_read_in_pages(browser: Browser, plant: Plant) -> None:
    for number in range(60):
        stored_alarms = await alarms.load(plant.store)
        change = AlarmChange(replace(ALARM, comment=f"<b>{number}"), AlarmChangeKind.ACKNOWLEDGED)
        await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [change]))
    eve = await browser.logged_in("eve")
    found = (await eve.get("/api/v1/alarms/history", accept_language="de")).json
    assert [len(found["changes"]), found["before"]] == [60, ""]
    assert (found["changes"][0]["alarm"]["comment"], found["changes"][0]["alarm"]["message"]) == ("<b>59", "zu heiß")
    first = (await eve.get("/alarms")).text
    assert ("&lt;b&gt;59" in first, "<b>59" in first, "&lt;b&gt;9" in first) == (True, False, False)
    (older,) = re.findall(r'rel="next" href="([^"]*)"', first)
    assert "&lt;b&gt;9" in (await eve.get(older)).text
    assert (await eve.get("/api/v1/alarms/history?before=x")).json["kind"] == "invalid_query"


async def test_tags_show_their_last_sample(browser: Browser, plant: Plant) -> None:
    await plant.store.commit(
        tags.save_last(plant.store.keys, {"oven.heat": '{"at": 1, "tag": "oven.heat", "value": 7.5}', "x": '{"at": 1}'})
    )
    eve = await browser.logged_in("eve")
    assert (await eve.get("/api/v1/tags?text=OVEN")).json["tags"][0]["value"] == 7.5
    assert (await eve.get("/api/v1/tags?text=OVEN")).json["tags"][0]["unit"] == "°C"
    # The damaged line is left out.
    assert "7.5 °C" in (await eve.get("/tags")).text
    assert "Heat of the oven" in (await eve.get("/tag?name=oven.heat")).text


async def test_tag_with_a_role_is_shown_to_that_role_only(browser: Browser, plant: Plant) -> None:
    await plant.store.commit(tags.save_last(plant.store.keys, {"dose": '{"at": 1, "tag": "dose", "value": 7.5}'}))
    eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
    for person, shown in ((eve, []), (alice, ["dose"])):
        assert [tag["tag"] for tag in (await person.get("/api/v1/tags?text=dose")).json["tags"]] == shown
    assert (await eve.get("/api/v1/tags/dose/trend")).json["kind"] == "unknown_tag"


async def test_trend_made_for_one_role_is_not_sent_to_a_lower_one(browser: Browser, plant: Plant) -> None:
    await plant.store.commit(tags.save_last(plant.store.keys, {"dose": '{"at": 1, "tag": "dose", "value": 7.5}'}))
    eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
    assert "polyline" in (await alice.get("/api/v1/tags/dose/trend.svg")).text
    assert (await eve.get("/api/v1/tags/dose/trend.svg")).json["kind"] == "unknown_tag"


async def test_tag_of_another_gateway_needs_the_role_of_its_name(browser: Browser, plant: Plant) -> None:
    line = '{"at": 1, "tag": "dose", "value": 7.5, "gateway": "press-2"}'
    await plant.store.commit(tags.save_last(plant.store.keys, {"dose[press-2]": line}))
    eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
    for person, shown in ((eve, []), (alice, ["dose[press-2]"])):
        assert [tag["tag"] for tag in (await person.get("/api/v1/tags?text=dose")).json["tags"]] == shown
        assert ("dose[press-2]" in (await person.get("/tags")).text) == bool(shown)
    for path in ("/api/v1/tags/dose%5Bpress-2%5D/trend", "/api/v1/tags/dose%5Bpress-2%5D/trend.svg"):
        assert (await eve.get(path)).json["kind"] == "unknown_tag"
    assert "7.5" not in (await eve.get("/tag?name=dose%5Bpress-2%5D")).text


async def test_control_chart_is_shown_to_the_role_of_its_tag_only(
    plant: Plant,
    users: Users,
    tmp_path: Path,
) -> None:
    rule = ControlChartRule(id="spread", tag="dose", severity=500, message={"en": "m"}, learn=5, subject="job")
    charted = encode_state(SubjectState(ControlChartState(mean=2.0, sigma=1.0, points=(9.0,))))
    await plant.store.commit(rule_memory.save(plant.store.keys, 0, "", {("spread", "dose[J1]"): charted}))
    definitions = TagDefinitions((TagDefinition("dose", role="operator"),))
    trends = Trends(plant.store, TrendMemory(), lambda: (rule,), definitions, None, tmp_path)
    services = services_of(plant, users, ports={"telemetry": SimpleNamespace(trends=trends, tags=definitions)})
    path = "/api/v1/control-charts/spread/dose%5BJ1%5D/chart.svg"
    async with serving(services) as browser:
        eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
        assert "polyline" in (await alice.get(path)).text
        assert (await eve.get(path)).json["kind"] == "unknown_chart"
        for person, count in ((eve, 0), (alice, 1)):
            assert len((await person.get("/api/v1/control-charts")).json["charts"]) == count
            assert ("dose[J1]" in (await person.get("/tags")).text) == bool(count)


async def test_trend_and_control_chart_are_drawn(browser: Browser, plant: Plant) -> None:
    await plant.store.commit(tags.save_last(plant.store.keys, {"oven": '{"at": 1, "tag": "oven", "value": 7.5}'}))
    eve = await browser.logged_in("eve")
    assert [point["value"] for point in (await eve.get("/api/v1/tags/oven/trend")).json["points"]] == [1.5, 2.5]
    assert "polyline" in (await eve.get("/api/v1/tags/oven/trend.svg")).text
    assert (await eve.get("/api/v1/tags/none/trend")).json["kind"] == "unknown_tag"
    assert "2.5" in (await eve.get("/tag?name=oven")).text
    (chart,) = (await eve.get("/api/v1/control-charts")).json["charts"]
    path = f"/api/v1/control-charts/{chart['rule']}/{quote(chart['subject'], safe='')}/chart.svg"
    assert "&lt;b&gt;/x" in (await eve.get(path)).text
    assert "&lt;b&gt;/x" in (await eve.get("/tags")).text
    assert (await eve.get("/api/v1/control-charts/none/x/chart.svg")).json["kind"] == "unknown_chart"


async def test_page_without_telemetry_shows_alarms_and_tags_of_the_store(plant: Plant, users: Users) -> None:
    stored_alarms = await alarms.load(plant.store)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
    await plant.store.commit(tags.save_last(plant.store.keys, {"oven": '{"at": 1, "tag": "oven", "value": 7.5}'}))
    async with serving(replace(services_of(plant, users), ports={})) as browser:
        eve = await browser.logged_in("eve")
        assert "too hot" in (await eve.get("/alarms")).text
        assert [tag["tag"] for tag in (await eve.get("/api/v1/tags")).json["tags"]] == ["oven"]
        assert (await eve.get("/api/v1/tags/oven/trend")).json["kind"] == "telemetry_off"
        assert (await eve.get("/api/v1/control-charts")).json == {"charts": []}
