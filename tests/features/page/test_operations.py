"""The operations of the API call the same functions as the command line."""

from datetime import UTC, datetime
from urllib.parse import quote

from msgspec.structs import replace

from edge.features.page.operations import OPERATIONS
from edge.features.page.services import WebServices
from edge.model.isa95 import JobOrder, Parameter
from edge.model.job_state import Cause, JobState, SubState
from edge.station.equipment import OutcomeUnknown
from tests.features.page.serving import ATTACK, IN_PATHS, Browser, serving
from tests.station.plant import Clock, FakeEquipment, Plant, action, linear, obliging, order


async def test_job_shows_progress_and_the_reason_for_waiting(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    found = (await eve.get("/api/v1/jobs/J1")).json
    assert found["job"]["state"] == "Running"
    assert found["waits"]["actions"][0]["action"] == "a"
    assert "Pause" in found["takes"]
    assert (await eve.get("/api/v1/jobs/J1/history")).json["decisions"][0]["signal"] == "start"
    for picture in ("chart.svg", "gantt.svg"):
        reply = await eve.get(f"/api/v1/jobs/J1/{picture}")
        assert reply.text.startswith("<svg")
        assert "sandbox" in reply.headers["content-security-policy"]


async def test_job_with_a_malicious_id_is_found(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    found = (await eve.get(f"/api/v1/jobs/{quote(ATTACK, safe='')}")).json
    assert found["job"]["job_order_id"] == ATTACK
    assert found["waits"]["halted"] == "not started"
    assert (await eve.get(f"/api/v1/jobs/{quote(ATTACK, safe='')}/chart.svg")).json["kind"] == "no_chart"


async def test_start_time_of_a_job_is_shown(browser: Browser, plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J2", start_time=datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)))
    eve = await browser.logged_in("eve")
    found = (await eve.get("/api/v1/jobs/J2")).json
    assert found["waits"]["halted"] == "start time"
    assert found["job"]["start_at"] == "2099-01-02T03:04:05.000Z"
    for page in ("/job?id=J2", "/"):
        text = (await eve.get(page)).text
        assert 'starts at <time datetime="2099-01-02T03:04:05.000Z" data-at="day">2099-01-0' in text


async def test_unknown_outcome_is_shown_with_its_reason(browser: Browser, plant: Plant, tool: FakeEquipment) -> None:
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "power lost"))
    eve = await browser.logged_in("eve")
    assert (await eve.get("/api/v1/jobs/J1")).json["waits"]["actions"][0]["error"] == "outcome unknown: power lost"
    assert "outcome unknown: power lost" in (await eve.get("/job?id=J1")).text


async def test_jobs_are_filtered_and_running_ones_come_first(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    assert [job["job_order_id"] for job in (await eve.get("/api/v1/jobs")).json["jobs"]] == ["J1", ATTACK]
    assert (await eve.get("/api/v1/jobs?state=Running&text=j")).json["total"] == 1
    assert (await eve.get("/api/v1/jobs?text=none")).json["total"] == 0
    assert [job["job_order_id"] for job in (await eve.get("/api/v1/jobs?offset=1")).json["jobs"]] == [ATTACK]
    assert (await eve.get("/api/v1/jobs?offset=-1")).json["kind"] == "invalid_query"
    assert 'rel="prev"' in (await eve.get("/jobs?offset=1")).text
    assert (await eve.get("/api/v1/jobs?state=Sleeping")).json["kind"] == "invalid_query"


def vehicle(job_id: str, vin: str) -> JobOrder:
    """Return an order about a vehicle."""
    return order(job_id, job_order_parameters=(Parameter(id="vin", value=vin),))


async def test_vin_stands_where_the_operator_looks_next(browser: Browser, plant: Plant, tool: FakeEquipment) -> None:
    """Jobs that wait, that ended and those of the list had their id only; what the operator has is the VIN."""
    alice = await browser.logged_in("alice")
    assert (await alice.post("/api/v1/jobs/J1/abort", {})).status == 200
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, vehicle("J2", "WDB-ended"))
    await plant.until_state("J2", JobState.ENDED)
    later = replace(vehicle("J3", "WDB-queued"), start_time=datetime(2099, 1, 2, tzinfo=UTC))
    await plant.order(Cause.STORE_AND_START, later)
    for page in ("/", "/jobs"):
        text = (await alice.get(page)).text
        for job_id, vin in (("J2", "WDB-ended"), ("J3", "WDB-queued")):
            shown = text.partition(f'href="/job?id={job_id}"')[2]
            assert shown.partition(">")[2].startswith(f"{vin}</a>")
            assert job_id in shown.partition("</a>")[2][:80], "the id stands beside it"
        assert 'title="J1">J1</a>' in text


async def test_jobs_are_found_by_their_vin(browser: Browser, plant: Plant) -> None:
    """The search knew ids of jobs only."""
    await plant.order(Cause.STORE, vehicle("J2", 'WDB"ü1'))
    eve = await browser.logged_in("eve")

    async def ids(text: str) -> list[str]:
        found = (await eve.get(f"/api/v1/jobs?text={quote(text, safe='')}")).json
        assert found["total"] == len(found["jobs"])
        return [job["job_order_id"] for job in found["jobs"]]

    assert await ids('wdb"Ü') == ["J2"]
    assert await ids("j2") == ["J2"]
    assert await ids("linear") == [], "the name of the recipe stands in the order, too"
    assert "/job?id=J2" in (await eve.get("/jobs?text=wdb")).text


async def test_station_lists_the_job_that_ended_last_first(browser: Browser, plant: Plant, clock: Clock) -> None:
    alice = await browser.logged_in("alice")
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.until_state("J2", JobState.RUNNING)
    assert (await alice.post("/api/v1/jobs/J1/abort", {})).status == 200
    await plant.until_state("J1", JobState.ABORTED)
    clock.now += 1000
    assert (await alice.post("/api/v1/jobs/J2/stop", {})).status == 200
    await plant.until_state("J2", JobState.ENDED)
    ended = (await alice.get("/")).text.partition("Jobs that ended last")[2]
    assert 0 < ended.index("/job?id=J2") < ended.index("/job?id=J1")


async def test_stopped_job_looks_different_from_a_completed_one(
    browser: Browser, plant: Plant, tool: FakeEquipment
) -> None:
    alice = await browser.logged_in("alice")
    assert (await alice.post("/api/v1/jobs/J1/stop", {})).status == 200
    await plant.until_state("J1", JobState.ENDED)
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.until_state("J2", JobState.ENDED)
    for page in ("/job?id=J1", "/job?id=J2"):
        text = (await alice.get(page)).text
        assert ("■</span> Stopped<" in text) == page.endswith("J1")
        assert ("✓</span> Completed<" in text) == page.endswith("J2")
    for page in ("/", "/jobs"):
        text = (await alice.get(page)).text
        assert (text.count(" outcome-stopped"), text.count(" outcome-completed")) == (1, 1)
        assert "stopped by alice at the station page" in text


async def test_operator_pauses_and_resumes_a_job(browser: Browser, plant: Plant) -> None:
    alice = await browser.logged_in("alice")
    reply = await alice.post("/api/v1/jobs/J1/pause", {"comment": "lunch"})
    assert reply.json["job"]["state"] == "Interrupted"
    assert (await plant.job("J1")).status.substate is SubState.SUSPENDED
    assert (await alice.post("/api/v1/jobs/J1/pause", {})).json["kind"] == "invalid_state"
    assert (await alice.post("/api/v1/jobs/J1/resume", {})).status == 200
    assert (await alice.post("/api/v1/jobs/J1/abort", {})).status == 200
    await plant.until_state("J1", JobState.ABORTED)
    assert str((await plant.job("J1")).error) == "aborted by alice at the station page"
    for page in ("/job?id=J1", "/"):
        assert "aborted by alice at the station page" in (await alice.get(page)).text
    assert (await alice.post("/api/v1/jobs/J1/clear", {})).json["job"] is None
    assert (await alice.get("/api/v1/jobs/J1")).json["kind"] == "unknown_job"


async def test_stop_without_a_reason_is_refused_where_one_is_wanted(services: WebServices, plant: Plant) -> None:
    async with serving(replace(services, reason_for=("stop",))) as browser:
        alice = await browser.logged_in("alice")
        for comment in ("", " "):
            reply = await alice.post("/api/v1/jobs/J1/stop", {"comment": comment})
            assert (reply.json["kind"], reply.json["reason"]) == ("needs_reason", "a reason is needed.")
        assert (await plant.job("J1")).status.state is JobState.RUNNING
        assert (await alice.post("/api/v1/jobs/J1/stop", {"comment": "oil"})).status == 200


async def test_changes_by_an_observer_are_refused(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    for path in [
        api_operation.path.format_map(IN_PATHS) for api_operation in OPERATIONS if api_operation.method == "POST"
    ]:
        # A person who signs at a panel has no login there.
        kind = "not_at_panel" if path.endswith("/sign") else "forbidden"
        assert (await eve.post(f"/api/v1{path}", {})).json["kind"] == kind, path


async def test_resolve_of_a_known_outcome_is_refused(browser: Browser) -> None:
    alice = await browser.logged_in("alice")
    body = {"action": "a", "resolution": "done", "reason": "seen"}
    assert (await alice.post("/api/v1/jobs/J1/resolve", body)).json["kind"] == "invalid_state"
    assert (await alice.post("/api/v1/jobs/J1/resolve", body | {"reason": ""})).status == 422
    wrong = body | {"resolution": "failed", "data": {}}
    assert (await alice.post("/api/v1/jobs/J1/resolve", wrong)).json["kind"] == "invalid_payload"


async def test_intervention_is_permitted_as_in_the_recipe(browser: Browser, plant: Plant) -> None:
    action_a = action("a", "one") | {"interventions": ["skip"]}
    await plant.teach("helped", linear(action_a) | {"interventions": ["force"]})
    await plant.order(Cause.STORE_AND_START, order("J2", "helped"))
    await plant.until_state("J2", JobState.RUNNING)
    alice = await browser.logged_in("alice")
    found = (await alice.get("/api/v1/jobs/J2")).json["interventions"]
    titles = {"title": "A", "target_title": ""}
    assert {"kind": "skip", "role": "operator", "action": "a", "step": "one", "target": "", **titles} in found
    assert "Skip: A" in (await alice.get("/job?id=J2")).text
    body = {"kind": "skip", "action": "a", "reason": "done by hand"}
    assert (await alice.post("/api/v1/jobs/J2/intervene", body | {"kind": "retry"})).json["kind"] == "invalid_state"
    force = {"kind": "force", "step": "one", "target": "two", "reason": "r"}
    assert (await alice.post("/api/v1/jobs/J2/intervene", force)).json["kind"] == "forbidden"
    reply = await alice.post("/api/v1/jobs/J2/intervene", body)
    assert (reply.status, reply.json["awaits_second"]) == (200, False)


async def test_repeated_change_with_the_same_key_is_executed_once(browser: Browser) -> None:
    alice = await browser.logged_in("alice")
    assert (await alice.post("/api/v1/jobs/J1/pause", {}, idempotency_key="1")).status == 200
    assert (await alice.post("/api/v1/jobs/J1/resume", {}, idempotency_key="1")).status == 200
    assert (await alice.post("/api/v1/jobs/J1/pause", {}, idempotency_key="1")).json["job"]["state"] == "Running"
    assert (await alice.post("/api/v1/jobs/J1/pause", {})).json["job"]["state"] == "Interrupted"


async def test_equipment_and_the_gateway_in_short_are_shown(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    assert (await eve.get("/api/v1/equipment")).json["equipment"][0]["name"] == "wrench"
    assert (await eve.get("/api/v1/status")).json["line"] == "1 job at work"
