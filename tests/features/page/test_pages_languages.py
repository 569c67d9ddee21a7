"""Reasons, refusals and the state of the gateway are in the language of the reader, on pages and in the HTTP API."""

from msgspec.structs import replace

from edge.features.page.services import WebServices
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth
from edge.station.equipment import OutcomeUnknown
from tests.features.page.serving import Browser, serving
from tests.station.plant import FakeEquipment, Plant


async def test_problem_is_in_the_language_of_the_reader(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    answers = [(await eve.get("/api/v1/jobs/X", accept_language=text)).json for text in ("de", "fr", "en", "")]
    assert [answer["reason"] for answer in answers[2:]] == ["there is no job order 'X'"] * 2
    assert answers[0]["reason"] == "es gibt keinen Auftrag 'X'"
    assert answers[1]["reason"] not in {answer["reason"] for answer in answers[2:]}
    assert {answer["kind"] for answer in answers} == {"unknown_job"}
    assert "es gibt keinen Auftrag" in (await eve.get("/job?id=X", accept_language="de")).text


async def test_waits_and_failures_of_a_job_are_in_german(browser: Browser, plant: Plant, tool: FakeEquipment) -> None:
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, Text.of("no answer yet")))
    eve = await browser.logged_in("eve")
    running = (await eve.get("/api/v1/jobs/J1", accept_language="de")).json
    assert running["waits"]["actions"][0]["error"] == "Ausgang unbekannt: noch keine Antwort"
    assert running["waits"]["transitions"][0]["unmet"][0]["because"] == "a ist unbekannt"
    page = (await eve.get("/job?id=J1", accept_language="de")).text
    assert "Ausgang unbekannt: noch keine Antwort" in page
    assert "a ist unbekannt" in page
    assert [word for word in ("outcome", "unknown:", "answer yet", " is unknown") if word in page] == []


async def test_job_that_a_person_aborted_names_it_in_german(browser: Browser, plant: Plant) -> None:
    alice = await browser.logged_in("alice")
    assert (await alice.post("/api/v1/jobs/J1/abort", {})).status == 200
    for path in ("/api/v1/jobs/J1", "/job?id=J1", "/jobs"):
        answer = (await alice.get(path, accept_language="de")).text
        assert "sofort beendet von alice an der Stationsseite" in answer
        assert "aborted by" not in answer
    assert str((await plant.job("J1")).error) == "aborted by alice at the station page"


async def test_reason_of_offline_equipment_is_in_german(services: WebServices) -> None:
    reason = Text.of("no answer within {seconds:g} s", seconds=5)
    state = ConnectionState(connected=False, since=1_767_322_740_000, fault=ConnectionFault.SILENT, reason=reason)
    away = EquipmentHealth(name="op", kind="openprotocol", connected=False, connection=state)
    async with serving(replace(services, equipment=lambda: (away,))) as browser:
        eve = await browser.logged_in("eve")
        (found,) = (await eve.get("/api/v1/equipment", accept_language="de")).json["equipment"]
        page = (await eve.get("/", accept_language="de")).text
    assert found["connection"]["reason"] == "keine Antwort innerhalb von 5 s"
    assert "keine Antwort innerhalb von 5 s" in page
    assert "no answer" not in page


async def test_charts_of_a_job_are_in_the_language_of_the_reader(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    for name, english, german in (
        ("chart.svg", "job J1 in station-1: running after", "Auftrag J1 in station-1: läuft nach"),
        ("gantt.svg", ">from 20", ">ab 20"),
        ("gantt.svg", "a: dispatched", "a: gesendet"),
    ):
        picture = f"/api/v1/jobs/J1/{name}"
        pictures = [(await eve.get(picture, accept_language=language)).text for language in ("en", "de", "en")]
        assert [english in text for text in pictures] == [True, False, True], pictures
        assert [german in text for text in pictures] == [False, True, False], pictures


async def test_decisions_of_a_job_are_stated_in_german(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    decisions = (await eve.get("/api/v1/jobs/J1/history", accept_language="de")).json["decisions"]
    assert [decision["text"] for decision in decisions][:1] == ["Start"]
    assert "<td>Start</td>" in (await eve.get("/job?id=J1", accept_language="de")).text
