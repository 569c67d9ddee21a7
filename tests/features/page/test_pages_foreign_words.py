"""No page has an English word for a reader of another language, with jobs in every state, alarms, flows and faults."""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.instances import process_token
from edge.access.localization import BUILT_IN, localize
from edge.access.locks import plan_acquire
from edge.access.login import Users
from edge.access.users import write_user
from edge.features.archive.database import ArchiveFile, ArchiveLimits
from edge.features.archive.service import Archive
from edge.features.page.models import Status
from edge.features.page.pages import PAGES
from edge.features.page.services import WebServices
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, PromptContext, Prompts, load_jobs
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.release import release_recipe
from edge.features.recipes.workbench_requests import text_of
from edge.features.telemetry.built_in_rules import built_in_documents
from edge.features.telemetry.rules.alarm import render_message
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.model.finding import HealthFinding
from edge.model.job_state import Cause, JobState
from edge.model.lock import LockKind
from edge.model.plant import (
    DEFAULT_MESSAGE,
    Component,
    ComponentKind,
    Maintenance,
    Operation,
    OperationState,
    OperationType,
    public_maintenance,
)
from edge.model.user import Role
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind
from edge.sfc.run import RunLocks, lock_reason
from edge.sfc.signal import PersonAnswer, Phase
from edge.station.equipment import Command, OutcomeUnknown
from edge.station.runs import claim_of
from edge.station.settings import SettingSource
from edge.store import components, dead_letters, equipment_memory, instance_leases, operations, stream_of_samples
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.commit import join
from edge.store.dead_letters import Letter, LetterKind, RefusedMessage, record_refusal
from edge.store.equipment_memory import SafingCommand
from edge.store.kept_alarms import AlarmChange
from tests.access.test_login_at_panels import ANNA, PIN
from tests.features.archive.archived import open_writer
from tests.features.page.foreign_words import english_words, texts_of
from tests.features.page.serving import TOOLS, Browser, services_of, serving, write_people
from tests.features.page.test_caller_signatures import PANELS
from tests.features.page.test_pages import lock_twice
from tests.features.prompts.recipes import TYPES, prompt
from tests.station.plant import SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, action, linear, order, until_true

LANGUAGES = ["de", "fr"]
REASON = Text.of("no answer within {seconds:g} s", seconds=5)
DEVICES = (
    *(
        EquipmentHealth(
            name=f"w{number}",
            kind="mqtt",
            connected=False,
            connection=ConnectionState(connected=False, since=1_700_000_000_000, fault=fault, reason=REASON),
            open_safing=(OpenSafing(what="stop", since=1_700_000_000_000),),
        )
        for number, fault in enumerate(ConnectionFault)
    ),
    EquipmentHealth(
        name="c1",
        kind="opcua",
        connected=True,
        problem=Text.of("tool may still be active: {equipment}", equipment="w1"),
    ),
)
_TYPES = list(OperationType)
ALARM = Alarm(
    id="a1",
    rule="r1",
    subject="w1",
    active=ActiveState.ACTIVE,
    acknowledgement=AckState.UNACKNOWLEDGED,
    severity=700,
    raised_at=1,
    message={},
)
AUTHOR = Author("anna", "en")
DRAFT_PAGES = ("/recipe-draft", "/recipe-try", "/recipe-compare", "/recipe-release")
ADDRESSES = {
    # J8 is unknown, J9 was removed, J11 and J12 have results, those after them ask.
    "/job": [f"/job?id=J{number}" for number in range(1, 18)],
    "/result": [
        *(f"/result?id=J{number}" for number in (5, 10, 11, 12)),
        "/result?id=J5&with=J10",
        "/result?id=J11&with=J12",
    ],
    "/audit": ["/audit", "/audit?verify=1", "/audit?user=none"],
    "/results": ["/results", "/results?text=none"],
    "/recipe": ["/recipe?scope=station-1&id=R1"],
    "/recipe-drafts": ["/recipe-drafts", "/recipe-drafts?scope=station-1&id=R4"],
    "/recipe-history": ["/recipe-history?scope=station-1&id=R4"],
    "/recipe-compare": ["/recipe-compare?scope=station-1&id=R4"],
    "/recipe-try": ["/recipe-try?scope=station-1&id=R4"],
    "/tag": ["/tag?name=t1"],
    "/flow": ["/flow?id=f1", "/flow?id=f2"],
    # The addresses and types of the API are documented in English, and records of the log are English.
    "/api": [],
}


@pytest_asyncio.fixture
async def plant(store: Store) -> AsyncIterator[Plant]:
    """A station with a job in every state."""
    tool = FakeEquipment()
    people = FakeEquipment("people")
    station = Plant(store, {TIGHTEN: tool, **dict.fromkeys(TYPES, people)}, Clock())
    await station.teach("R1", linear(action("A1", "S1", timeout_seconds=5), action("A2", "S2")))
    helped = action("A1", "S1") | {"interventions": ["retry", "skip"]}
    await station.teach("R2", linear(helped, action("A2", "S2")))
    async with station.at_work():
        for number, recipe in enumerate(("R1", "R2", "R1", "R1", "R1"), 1):
            await station.order(Cause.STORE_AND_START, order(f"J{number}", recipe))
            await until_true(partial(_has_received, tool, number))
        await station.answer(tool.commands[1], error="E17")
        await station.answers.answer(OutcomeUnknown(tool.commands[2].command_id, REASON))
        await station.ask(Cause.PAUSE, "J4")
        await station.ask(Cause.ABORT, "J5")
        await station.order(Cause.STORE, order("J6", "R1"))
        await station.order(Cause.STORE, order("J7", "R1", start_time=datetime(2030, 1, 1, tzinfo=UTC)))
        await station.order(Cause.STORE, order("J9", "R1"))
        await station.ask(Cause.CANCEL, "J9")
        await station.order(Cause.STORE_AND_START, order("J10", "R1"))
        await until_true(partial(_has_received, tool, 6))
        await station.until_state("J10", JobState.RUNNING)
        await station.ask(Cause.STOP, "J10")
        await end_with_results(station, tool)
        await ask_people(station, people)
        await lock_twice(station)
        await occupy_gateway(station)
        await administer(station)
        yield station


TITLES = {"S1": {"de": "Naht", "fr": "Joint"}, "S2": {"de": "Spalt", "fr": "Jeu"}}
CHOICES = [
    {"value": "flush", "title": {"en": "Yes, flush", "de": "Ja", "fr": "Oui"}},
    {"value": "proud", "title": {"en": "No, it stands out", "de": "Nein", "fr": "Non"}},
]
LIMITS = {"violation": "Low", "measured": {"value": 3.1, "unit": "Nm"}, "low": {"value": 8.0, "unit": "Nm"}}


async def end_with_results(plant: Plant, tool: FakeEquipment) -> None:
    """End a job that is OK, and one with a violated limit and a choice of a person that is not."""
    asks = action("A2", "S2", parameters={"title": TITLES["S2"], "choices": CHOICES})
    recipe = linear(action("A1", "S1"), asks) | {"verdict": "choice == 'flush'"}
    recipe["steps"] = [{"name": name, "initial": name == "S1", "title": title} for name, title in TITLES.items()]
    await plant.teach("R3", recipe)
    answers = (("J11", {"angle": 41.5}, "flush"), ("J12", {"torque": 3.1, "violations": {"torque": LIMITS}}, "proud"))
    for job_id, measured, choice in answers:
        await plant.order(Cause.STORE_AND_START, order(job_id, "R3"))
        await until_true(partial(_commands_of, tool, job_id, "A1"))
        await plant.answer(_commands_of(tool, job_id, "A1")[0], measured)
        await until_true(partial(_commands_of, tool, job_id, "A2"))
        (asked,) = _commands_of(tool, job_id, "A2")
        await plant.runs.signal(job_id, PersonAnswer(asked.command_id, {"choice": choice}, "anna"))
        await plant.until_state(job_id, JobState.ENDED)


ASKED = {"de": "Sitzt das Kabel?", "fr": "Le câble est en place ?"}
FIELDS = [
    {"name": "m1", "type": "number", "unit": "kg", "min": 1, "max": 9, "title": {"de": "Masse", "fr": "Masse"}},
    {"name": "s1", "type": "scan", "title": {"de": "Teil", "fr": "Pièce"}, "optional": True},
]
PROMPTS = {
    "J13": prompt("confirm", "A1", "S1", title=ASKED, text=TITLES["S2"], timeout_seconds=600),
    "J14": prompt("choose", "A1", "S1", title=ASKED, choices=CHOICES, role="engineer"),
    "J15": prompt("enter", "A1", "S1", title=ASKED, fields=FIELDS, role="operator", second_person=True),
    "J16": prompt("confirm", "A1", "S1", title=ASKED, sign="any"),
    "J17": prompt("confirm", "A1", "S1", title=ASKED, second_person=True),
}
"""What each job asks; the last one has a first answer, and waits for a second person."""


async def ask_people(plant: Plant, people: FakeEquipment) -> None:
    """Start a job for each kind of prompt."""
    for number, (job_id, asked) in enumerate(PROMPTS.items(), 1):
        recipe = linear(asked) | {"steps": [{"name": "S1", "initial": True, "title": TITLES["S1"]}]}
        await plant.teach(f"P{number}", recipe)
        await plant.order(Cause.STORE_AND_START, order(job_id, f"P{number}"))
        await until_true(partial(_has_received, people, number))
    prompts = await prompts_of(plant)
    first = next(open_prompt for open_prompt in prompts.open if open_prompt.job_id == "J17")
    answered = await prompts.answer(first.id, GivenAnswer(), Person("anna", Role.OPERATOR), "test", "E1")
    assert answered.awaits_second


async def prompts_of(plant: Plant) -> Prompts:
    """Return the prompts of the jobs as they are now."""
    jobs = await load_jobs(plant.runs)
    return Prompts(PromptContext(plant.runs, TYPES, 60_000, 60_000), (SCOPE,), lambda: jobs)


def _commands_of(tool: FakeEquipment, job_id: str, name: str) -> list[Command]:
    return [command for command in tool.commands if command.job_id == job_id and f"/{name}/" in command.command_id]


def _has_received(tool: FakeEquipment, number: int) -> bool:
    return len(tool.commands) == number


async def occupy_gateway(plant: Plant) -> None:
    """Store what the other pages show: each built-in alarm, tags, operations, locks and a component with a problem."""
    for document in built_in_documents():
        facts = {"name": "w1", "value": 2, "job": "J1", "data": {"step": "S1", "seconds": 9, "usual": 5}}
        alarm = replace(ALARM, id=document["id"], rule="r1", message=render_message(document["message"], facts))
        stored_alarms = await alarms.load(plant.store)
        for kind in AlarmChangeKind:
            await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(alarm, kind)]))
            stored_alarms = await alarms.load(plant.store)
    samples = {"t1": '{"at": 1, "tag": "t1", "value": 7.5}', "t2": '{"at": 1, "tag": "t2", "value": true}'}
    await plant.store.commit(stream_of_samples.save_last(plant.store.keys, samples))
    for number, state in enumerate(OperationState):
        operation = Operation(id=f"o{number}", type=_TYPES[number], state=state, by="max", due=1, created=1)
        await plant.store.commit(operations.create(plant.store.keys, operation))
    claim = claim_of("J1", SCOPE, lock_reason(RunLocks(entering=("S1",))), 1)
    for lock_kind in LockKind:
        await plant.store.commit((await plan_acquire(plant.store, lock_kind, ("c1",), claim)).commit)
    problem = Text.of("equipment disconnected: {equipment}", equipment="w1")
    for component_kind in get_args(ComponentKind):
        component = Component(
            id=f"i-{component_kind[0]}", kind=component_kind, version="1.0", started=1, problems=problem, jobs=1
        )
        parts = components.put(plant.store.keys, component), components.touch(plant.store.keys, component.id, 1)
        await plant.store.commit(join(parts))


async def administer(plant: Plant) -> None:
    """Store what the pages of administration show: equipment of every fault, dead letters, refused messages."""
    keys, store = plant.store.keys, plant.store
    await instance_leases.register(store, (SCOPE,), "edge")
    await instance_leases.acquire(store, "edge", process_token())
    report = EquipmentReport(at=1_700_000_000_000, equipment=DEVICES)
    await store.commit(equipment_memory.save_report(keys, "edge", report))
    for phase in (Phase.STOP, Phase.RESET):
        command = SafingCommand(
            phase=phase, command_id=f"J1/{phase}", type_id=TIGHTEN, scope=SCOPE, job_id="J1", correlation_id="c",
            action="A1", attempt=1, since=0,
        )  # fmt: skip
        await store.commit(equipment_memory.save_safing(keys, command))
    for letter_kind in LetterKind:
        letter = Letter(letter_kind, SCOPE, "J1", "E17", 1_700_000_000_000, {"phase": Phase.STOP.value})
        await store.commit(dead_letters.add(keys, letter, 60_000))
    await store.commit(record_refusal(keys, RefusedMessage("app/x", "t", "1", "invalid_payload", "E17", b"{}")))


@pytest_asyncio.fixture
async def archive(plant: Plant, tmp_path: Path) -> AsyncIterator[Archive]:
    """The archive of the jobs that have ended."""
    file = ArchiveFile(tmp_path / "archive" / "results.sqlite", ArchiveLimits(365 * 86_400_000, 1 << 30))
    await (await open_writer(plant, file)).flush()
    yield Archive(file.file, ())
    file.close()


@pytest_asyncio.fixture
async def services(plant: Plant, archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> WebServices:
    file = tmp_path_factory.mktemp("users") / "users"
    users: Users = write_people(file)
    write_user(file, ANNA)
    ports = {"archive": archive, "prompts": await prompts_of(plant)}
    services = services_of(plant, users, most_requests=10_000, ports=ports)
    return replace(services, equipment=lambda: DEVICES, status=status, tools=replace(TOOLS, examine=_examine))


async def _examine() -> tuple[HealthFinding, ...]:
    return ()


def status(languages: Sequence[str]) -> Status:
    """Return the status of a gateway with a problem, in the first language of the caller."""
    (language, *_) = languages or ("en",)
    return Status(
        gateway="edge",
        version="1.0",
        line=Text.of("1 job at work").in_language(language),
        problems=Text.of("equipment disconnected: {equipment}", equipment="w1").in_language(language),
        work_waits="",
        scopes=(SCOPE,),
        active_runs=1,
        maintenance=public_maintenance(Maintenance(), localize(DEFAULT_MESSAGE, BUILT_IN, languages)),
    )


@pytest_asyncio.fixture
async def browser(services: WebServices) -> AsyncIterator[Browser]:
    async with serving(services) as found:
        yield found


async def draft_pages(services: WebServices) -> list[str]:
    """Return the pages of a draft: of one that is behind a release, with a fault."""
    desk: Desk = services.ports["recipes"]
    recipe = linear(action("A1", "S1")) | {"steps": [{"name": "S1", "initial": True, "title": TITLES["S1"]}]}
    await release_recipe(desk, SCOPE, "R4", recipe, "E17", AUTHOR, SettingSource.PAGE)
    stuck = recipe | {"transitions": [{"source": "S1", "target": "S1", "condition": "actions.A1.failed"}]}
    draft = await desk.create(SCOPE, "R4", AUTHOR, text_of(stuck))
    await release_recipe(desk, SCOPE, "R4", linear(action("A2", "S2")), "E18", AUTHOR, SettingSource.PAGE)
    return [f"{page}?draft={draft.id}" for page in DRAFT_PAGES]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_page_has_an_english_word(browser: Browser, services: WebServices, language: str) -> None:
    visitors = [browser, await browser.logged_in("max"), await browser.logged_in("eve")]
    drafts = await draft_pages(services)
    paths = ["/login", "/none", *drafts, *(path for page in PAGES for path in ADDRESSES.get(page, [page]))]
    await services.audit.trail.write_waiting()
    english: list[str] = []
    pictures: set[str] = set()
    for visitor in visitors:
        for path in paths:
            page = (await visitor.get(path, accept_language=language)).text
            english += english_of(path, page, language)
            pictures |= set(re.findall(r'<img [^>]*src="([^"]+)"', page))
    for picture in sorted(pictures):
        svg = (await visitors[1].get(picture.replace("&amp;", "&"), accept_language=language)).text
        english += english_of(picture, svg, language)
    assert not english, "\n".join(dict.fromkeys(english))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_page_of_a_panel_has_an_english_word(services: WebServices, language: str) -> None:
    form = {"content_type": "application/x-www-form-urlencoded", "accept_language": language}
    async with serving(replace(services, panels=PANELS)) as stranger:
        headers = form | {"origin": stranger.origin}
        pages = {
            "by PIN": (await stranger.get("/login?next=%2Fjob%3Fid%3DJ13", accept_language=language)).text,
            "by password": (await stranger.get("/login?password", accept_language=language)).text,
            "wrong PIN": (await stranger.send("POST", "/login", headers, b"name=anna&pin=0000")).text,
        }
        assert "data-keys" in pages["by PIN"]
        assert 'role="alert"' in pages["wrong PIN"]
        anna = await stranger.send("POST", "/login", headers, f"name=anna&pin={PIN}".encode())
        operator = Browser(stranger.host, stranger.port, anna.headers["set-cookie"].partition(";")[0])
        for path in ("/", "/alarms", "/jobs", *ADDRESSES["/job"], "/results", *ADDRESSES["/result"]):
            pages[path] = (await operator.get(path, accept_language=language)).text
        engineer = await stranger.logged_in("max")
        for path in ("/", "/job?id=J14", "/gateway", "/equipment", "/flows"):
            pages[f"{path} of an engineer"] = (await engineer.get(path, accept_language=language)).text
    for job_id in PROMPTS:
        assert 'data-kind="prompt"' in pages[f"/job?id={job_id}"], job_id
    assert 'id="sign"' in pages["/"]
    english = [fault for path, page in pages.items() for fault in english_of(path, page, language)]
    assert not english, "\n".join(dict.fromkeys(english))


FORMULA = re.compile(r"==|!=|<=|>=|&&|\|\||\b(?:steps|actions|vars)\.\w+")


async def test_no_page_of_a_job_has_a_formula_in_plain_sight(browser: Browser) -> None:
    operator = await browser.logged_in("alice")
    for path in ("/", *ADDRESSES["/job"], "/jobs", *ADDRESSES["/results"], *ADDRESSES["/result"]):
        page = (await operator.get(path, accept_language="de")).text
        plain = re.sub(r"<details class=\"formulas\".*?</details>", "", page, flags=re.DOTALL)
        assert [text for text in texts_of(plain) if FORMULA.search(text)] == [], path


async def test_one_of_a_kind_is_not_counted_as_many(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    for language, one, many in (
        ("en", "1 job ", "1 jobs"),
        ("de", "1 Auftrag ", "1 Aufträge"),
        ("fr", "1 ordre ", "1 ordres"),
    ):
        page = (await engineer.get("/gateway", accept_language=language)).text
        assert (one in page, many in page) == (True, False), language


def english_of(path: str, document: str, language: str) -> list[str]:
    """Return the texts of a page that have English words, with these."""
    texts = ((text, english_words(text, language)) for text in texts_of(document))
    return [f"{path}: {text!r}: {', '.join(words)}" for text, words in texts if words]
