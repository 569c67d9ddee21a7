"""People find, open, compare and export archived jobs in a browser; so do programs over HTTP."""

import csv
import io
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.archive.database import ArchiveFile
from edge.features.archive.page import search_of
from edge.features.archive.service import Archive
from edge.features.page.services import WebServices
from edge.features.traces.files import TraceFiles, TraceLimits
from edge.foundation.errors import Refused
from edge.model.job_state import Cause, JobState
from edge.ports.result_trace import stored_in
from edge.sfc.signal import PersonAnswer, Phase
from edge.station.equipment import Command, EquipmentAnswer
from tests.features.archive.archived import end_jobs, open_writer
from tests.features.page.serving import Browser, services_of, serving, write_people
from tests.station.plant import TIGHTEN, FakeEquipment, Plant, action, linear, order, until_true

pytestmark = pytest.mark.slow

CURVES = [{"name": "Torque", "unit": "N·m", "values": [0.0, 42.1, 85.2]}]


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return write_people(tmp_path / "users")


@pytest.fixture
def traces(tmp_path: Path) -> TraceFiles:
    return TraceFiles(tmp_path / "traces", TraceLimits(1 << 20, 100, 3600))


@pytest.fixture
def services(plant: Plant, users: Users, archive_file: ArchiveFile, traces: TraceFiles) -> WebServices:
    return services_of(plant, users, ports={"archive": Archive(archive_file.file, ()), "traces": traces})


@pytest_asyncio.fixture
async def eve(
    plant: Plant, tool: FakeEquipment, services: WebServices, archive_file: ArchiveFile, traces: TraceFiles
) -> AsyncIterator[Browser]:
    """A person who may look at an archive of three jobs, the last of which is not OK."""
    kept = await traces.keep("J3", {"torque": {"value": 91, "unit": "N·m"}, "trace": {"channels": CURVES}})
    violation = {"violations": {"torque": {"measured": 91, "violation": "High"}}}

    def reply(command: Command) -> EquipmentAnswer | None:
        if command.phase is not Phase.START:
            return None
        return EquipmentAnswer(command.command_id, kept | violation if "J3" in command.command_id else {"ok": True})

    tool.replies = reply
    await end_jobs(plant, ["J1", "J2", "J3"])
    await (await open_writer(plant, archive_file)).flush()
    async with serving(services) as browser:
        yield await browser.logged_in("eve")


async def test_jobs_are_found_and_opened_over_the_api(eve: Browser) -> None:
    (job,) = (await eve.get("/api/v1/results?text=vin-j3")).json["jobs"]
    assert (job["job_order_id"], job["remark"]) == ("J3", "a: torque high")
    assert len((await eve.get("/api/v1/results?violation=torque+high")).json["jobs"]) == 1
    assert len((await eve.get("/api/v1/results?parameter=vin=VIN-J1")).json["jobs"]) == 1
    assert len((await eve.get("/api/v1/results?since=2035-01-01T00:00:00Z")).json["jobs"]) == 0
    result = (await eve.get(f"/api/v1/results/{job['id']}")).json
    assert result["parameters"] == {"vin": "VIN-J3"}
    assert result["history"]["decisions"]
    by_order = (await eve.get("/api/v1/results/J3")).json
    assert by_order == result
    assert (await eve.get("/api/v1/results/J9")).status == 404


async def test_chart_timeline_and_curves_of_an_archived_job_are_drawn(eve: Browser) -> None:
    (job,) = (await eve.get("/api/v1/results?text=J3")).json["jobs"]
    (digest, *_) = {
        reference.sha256
        for result in (await eve.get(f"/api/v1/results/{job['id']}")).json["results"]
        for reference in stored_in(result["result"])
    }
    for name in ("chart.svg", "gantt.svg", f"traces/{digest}/0/curve.svg"):
        answer = await eve.get(f"/api/v1/results/{job['id']}/{name}")
        assert (answer.status, answer.text.startswith("<svg")) == (200, True), name
    assert (await eve.get(f"/api/v1/results/{job['id']}/traces/{'0' * 64}/0/curve.svg")).status == 404


async def test_analysis_names_the_reasons_and_the_steps(eve: Browser) -> None:
    analysis = (await eve.get("/api/v1/results-analysis")).json
    assert [reason["reason"] for reason in analysis["reasons"]] == ["a: torque high", "b: torque high"]
    assert {step["step"] for step in analysis["steps"]} == {"one", "two"}
    for name in ("results-pareto.svg", "results-steps.svg"):
        assert (await eve.get(f"/api/v1/{name}")).text.startswith("<svg")


async def test_export_of_the_page_has_the_vin_without_asking(eve: Browser) -> None:
    rows = list(csv.DictReader(io.StringIO((await eve.get("/api/v1/results-export")).text)))
    assert sorted(row["vin"] for row in rows) == ["VIN-J1", "VIN-J2", "VIN-J3"]


async def test_export_is_streamed_as_csv(eve: Browser) -> None:
    answer = await eve.get("/api/v1/results-export?columns=vin")
    assert answer.status == 200, answer
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sorted(row["vin"] for row in rows) == ["VIN-J1", "VIN-J2", "VIN-J3"]
    assert (await eve.get("/api/v1/results-export?format=xls")).status == 422


async def test_pages_show_search_one_result_and_two(eve: Browser) -> None:
    page = (await eve.get("/results?days=1&text=VIN-J")).text
    assert [f"<strong>VIN-J{number}</strong>" in page for number in (1, 2, 3)] == [True] * 3
    assert "<th>Verdict</th>" in page
    assert "No job meets the search." in (await eve.get("/results?text=nothing")).text
    (job, other, _) = (await eve.get("/api/v1/results")).json["jobs"]
    one = (await eve.get(f"/result?id={job['id']}")).text
    assert "VIN-J3" in one
    assert "a: torque high" in one
    assert "/curve.svg?live" in one
    assert one.index('<h2 class="found">VIN-J3</h2>') < one.index("J3</strong>") < one.index("<article")
    assert '<p class="mark bad">torque 91 too high</p>' in one
    two = (await eve.get(f"/result?id={job['id']}&with={other['id']}")).text
    assert "Compare" in two
    assert two.index('data-part="differences"') < two.index("<article") < two.index("chart.svg?live")
    assert (await eve.get("/result?id=J9")).status == 404


async def test_steps_and_reasons_are_named_by_the_titles_of_the_recipe(
    plant: Plant, tool: FakeEquipment, services: WebServices, archive_file: ArchiveFile
) -> None:
    low = {"violations": {"torque": {"measured": 3, "violation": "Low"}}}
    tool.replies = lambda command: EquipmentAnswer(command.command_id, low)
    step = {"name": "one", "initial": True, "title": {"en": "Bolt 1", "de": "Schraube 1"}}
    await plant.teach("linear", linear(action("a", "one")) | {"steps": [step]})
    await end_jobs(plant, ["J1"])
    await (await open_writer(plant, archive_file)).flush()
    async with serving(services) as browser:
        eve = await browser.logged_in("eve")
        texts = [
            (await eve.get(path, accept_language="de")).text
            for path in ("/results", "/results-why", "/api/v1/results-pareto.svg", "/result?id=J1")
        ]
        assert ["Schraube 1: Drehmoment zu niedrig" in text for text in texts] == [True] * len(texts)
        assert ">Schraube 1</text>" in (await eve.get("/api/v1/results-steps.svg", accept_language="de")).text
        found = (await eve.get("/api/v1/results?violation=torque+low", accept_language="de")).json["jobs"]
        assert [job["step_titles"] for job in found] == [{"one": "Schraube 1"}]


async def test_choice_of_a_person_is_the_reason_and_leads_to_its_jobs(
    plant: Plant, tool: FakeEquipment, services: WebServices, archive_file: ArchiveFile
) -> None:
    tool.replies = lambda _: None
    parameters = {"choices": [{"value": "flush"}, {"value": "proud", "title": {"en": "Proud", "de": "Steht vor"}}]}
    asks = action("look", "one", interaction="push_command", parameters=parameters)
    await plant.teach("ring", {**linear(asks), "verdict": 'choice == "flush"'})
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "ring"))
        await until_true(tool.received)
        answer = PersonAnswer(tool.commands[0].command_id, {"choice": "proud"}, "anna")
        await plant.runs.signal("J1", answer)
        await plant.until_state("J1", JobState.ENDED)
    await (await open_writer(plant, archive_file)).flush()
    async with serving(services) as browser:
        eve = await browser.logged_in("eve")
        (job,) = (await eve.get("/api/v1/results?verdict=not_ok")).json["jobs"]
        assert job["decided"] == [{"reason": "look: Proud", "by": "anna"}]
        assert job["remark"] == "look: Proud (anna)"
        page = (await eve.get(f"/result?id={job['id']}", accept_language="de")).text
        assert "<strong>look: Steht vor</strong> von anna" in page
        assert '<p class="answer"><strong>Steht vor</strong> von anna</p>' in page
        assert not re.search(r"<d[td]>(choice|proud)", page)
        why = (await eve.get("/results-why", accept_language="de")).text
        assert "look: Steht vor" in why
        (address,) = re.findall(r'href="(/results\?days=30&amp;violation=[^"]+)"', why)
        assert "J1" in (await eve.get(address.replace("&amp;", "&"))).text
        assert "All are OK." not in why


async def test_results_of_other_recipes_are_not_compared_silently(
    plant: Plant, eve: Browser, archive_file: ArchiveFile
) -> None:
    await plant.teach("other", linear(action("a", "one")))
    await end_jobs(plant, ["K1"], "other")
    await plant.teach("linear", linear(action("a", "one"), action("b", "two", TIGHTEN, timeout_seconds=9)))
    await end_jobs(plant, ["J4"])
    await (await open_writer(plant, archive_file)).flush()
    other = (await eve.get("/result?id=J1&with=K1")).text
    assert "different recipes: linear (" in other
    assert "Time per step" not in other
    revision = (await eve.get("/result?id=J1&with=J4")).text
    assert "different revisions of the recipe" in revision
    assert "Time per step" in revision
    same = (await eve.get("/result?id=J1&with=J2")).text
    assert "different" not in same
    # The list offers another result of the same recipe only.
    page = (await eve.get("/results")).text
    offered = dict(re.findall(r'aria-label="(\w+): Compare with (\w+)"', page))
    assert (offered.get("K1"), offered["J1"][0]) == (None, "J")


async def test_result_of_a_removed_job_stays_and_is_marked(plant: Plant, eve: Browser) -> None:
    assert "although the job was removed" not in (await eve.get("/result?id=J1")).text
    await plant.ask(Cause.CLEAR, "J1")
    assert "although the job was removed" in (await eve.get("/result?id=J1")).text


@pytest.mark.parametrize(("with_archive", "text"), [(True, "stays on the page Results"), (False, "the result is lost")])
async def test_removal_states_whether_the_result_stays(
    plant: Plant, users: Users, archive_file: ArchiveFile, text: str, *, with_archive: bool
) -> None:
    ports = {"archive": Archive(archive_file.file, ())} if with_archive else {}
    await end_jobs(plant, ["J1"])
    async with serving(services_of(plant, users, ports=ports)) as browser:
        alice = await browser.logged_in("alice")
        assert text in (await alice.get("/job?id=J1")).text


async def test_failed_job_has_one_word_and_every_filter_finds_it(
    plant: Plant, tool: FakeEquipment, services: WebServices, archive_file: ArchiveFile
) -> None:
    tool.replies = lambda command: EquipmentAnswer(command.command_id, error="head torn off")
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ABORTED)
    writer = await open_writer(plant, archive_file, {TIGHTEN: "wrench"})
    await writer.flush()
    async with serving(services) as browser:
        eve = await browser.logged_in("eve")
        pages = [(await eve.get(path)).text for path in ("/", "/jobs", "/job?id=J1", "/results", "/result?id=J1")]
        assert ['<span class="state outcome-failed">' in page for page in pages] == [True] * len(pages)
        assert ['<span class="state outcome-aborted">' in page for page in pages] == [False] * len(pages)
        for query in ("outcome=failed", "violation=a", "violation=failed", "equipment=wrench"):
            assert len((await eve.get(f"/api/v1/results?{query}")).json["jobs"]) == 1, query
        assert (await eve.get("/api/v1/results?outcome=aborted")).json["jobs"] == []


@pytest.mark.parametrize("query", [{"parameter": "vin"}, {"since": "yesterday"}])
def test_wrong_query_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Refused, match="is not"):
        search_of(query)


async def test_gateway_without_archive_refuses_and_shows_the_reason(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users)) as browser:
        observer = await browser.logged_in("eve")
        assert (await observer.get("/api/v1/results")).status == 409
        assert "This gateway keeps no archive." in (await observer.get("/results")).text


async def test_first_view_of_results_stays_within_its_budget(eve: Browser) -> None:
    """The page with its files and pictures: 150 kB (station-page), each in a fraction of a second."""
    page = (await eve.get("/results")).text
    parts = [
        text.replace("&amp;", "&") for text in re.findall(r'(?:src|href)="(/(?:static|api/v1/results-)[^"]+)"', page)
    ]
    shown = {part for part in parts if "results-export" not in part}
    assert len(shown) >= 5, shown
    began = time.monotonic()
    sizes = {part: len((await eve.get(part)).body) for part in ("/results", *shown)}
    assert time.monotonic() - began < 5  # seven requests, each on a connection of its own, while other tests run
    assert sum(sizes.values()) < 150_000, sizes
