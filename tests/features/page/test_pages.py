"""The pages work with and without JavaScript, and never execute content of data."""

import gzip
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import jinja2
import pytest
from msgspec.structs import replace

from edge.features.page.pages import templates
from edge.features.page.problems import without_command
from edge.features.page.server import ConnectionBounds, WebAddress, build_app, serve
from edge.features.page.services import WebServices
from edge.foundation.text import Text, labels
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth
from edge.model.job_state import Cause, JobState
from edge.ports.alarm import AlarmChangeKind
from edge.station.public_job import JobOutcome
from edge.store import kept_alarms as alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.serving import ATTACK, Browser, serving
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import Plant, action, linear, order

RECIPES = ["/recipes", "/recipe?scope=station-1&id=linear"]
PAGES = [
    "/",
    "/job?id=J1",
    f"/job?id={quote(ATTACK, safe='')}",
    "/jobs",
    "/alarms",
    "/tags",
    "/flows",
    "/gateway",
    "/doctor",
    "/log",
    "/api",
]


class Elements(HTMLParser):
    """Collects what a page contains."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("language", ["en", "de"])
async def test_page_is_complete_and_executes_no_data(browser: Browser, path: str, language: str) -> None:
    engineer = await browser.logged_in("max")
    reply = await engineer.get(path, accept_language=language)
    assert reply.status == 200
    scripts = [attributes for tag, attributes in Elements(reply.text).tags if tag == "script"]
    assert {script["type"] for script in scripts} == {"module"}
    assert all((script["src"] or "").startswith("/static/") for script in scripts)
    assert ATTACK not in reply.text
    assert f'<html lang="{language}">' in reply.text


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ("no connection since ", "connection refused", "cannot connect to 10.0.0.5:4545: Connection refused")),
        (
            "de",
            (
                "keine Verbindung seit ",
                "Verbindung verweigert",
                "keine Verbindung zu 10.0.0.5:4545: Connection refused",
            ),
        ),
    ],
)
async def test_station_names_why_equipment_is_not_connected(
    services: WebServices, language: str, texts: tuple[str, ...]
) -> None:
    reason = Text.of(
        "cannot connect to {host}:{port}: {reason}", host="10.0.0.5", port=4545, reason="Connection refused"
    )
    state = ConnectionState(connected=False, since=1_767_322_740_000, fault=ConnectionFault.REFUSED, reason=reason)
    away = EquipmentHealth(name="op", kind="openprotocol", connected=False, connection=state)
    async with serving(replace(services, equipment=lambda: (away,))) as browser:
        eve = await browser.logged_in("eve")
        page = (await eve.get("/", accept_language=language)).text
    assert [text for text in texts if text not in page] == []


async def test_lamp_of_equipment_without_connection_is_grey(services: WebServices) -> None:
    device = EquipmentHealth(name="op", kind="mqtt")
    for change, colour in (
        ({"connected": True}, "good"),
        ({"connected": None}, "off"),
        ({"connected": False}, "off"),
        ({"connected": True, "problem": "no vacuum"}, "bad"),
        ({"connected": False, "safing": 1}, "bad"),
    ):
        shown = replace(device, **change)
        async with serving(replace(services, equipment=lambda shown=shown: (shown,))) as browser:
            eve = await browser.logged_in("eve")
            assert f'class="dot {colour}"' in (await eve.get("/")).text, change


async def test_station_names_a_disconnected_tool_that_may_be_active(services: WebServices) -> None:
    problem = "the tool may still be active, not confirmed since 2026-01-02 02:59:00Z: stop of J1/R/a/1"
    state = ConnectionState(connected=False, since=1_767_322_740_000, fault=ConnectionFault.OFFLINE)
    unsafe = EquipmentHealth(
        name="op", kind="mqtt", connected=False, connection=state, safing=1, problem=problem, outstanding=0
    )
    async with serving(replace(services, equipment=lambda: (unsafe,))) as browser:
        eve = await browser.logged_in("eve")
        assert problem in (await eve.get("/")).text


RELEASE = re.compile(r"data-send=\"/api/v1/locks/delete\" data-given='([^']+)'")


async def lock_twice(plant: Plant) -> None:
    """Start two jobs that need the same jig: L1 holds it, L2 waits."""
    recipe = linear(action("A1", "S1"), action("A2", "S2"))
    steps = [step | {"lock": ["jig"]} for step in recipe["steps"]]  # type: ignore[attr-defined]
    await plant.teach("R9", recipe | {"steps": steps})
    for job_id in ("L1", "L2"):
        await plant.order(Cause.STORE_AND_START, order(job_id, "R9"))
        await plant.until_state(job_id, JobState.RUNNING)


async def test_wait_for_equipment_that_is_away_has_the_reason(services: WebServices) -> None:
    away = EquipmentHealth(name="wrench", kind="mqtt", connected=False)
    async with serving(replace(services, equipment=lambda: (away,))) as browser:
        eve = await browser.logged_in("eve")
        for path in ("/", "/job?id=J1"):
            # Whether the command has left the gateway is not what this is about.
            assert re.search("wrench( yet)?: not connected", (await eve.get(path)).text)
            assert ": nicht verbunden" in (await eve.get(path, accept_language="de")).text


async def test_page_has_no_command_of_a_terminal_as_advice(browser: Browser, plant: Plant) -> None:
    message = {"en": "wrench reports a fault: edge equipment show"}
    change = AlarmChange(replace(ALARM, rule="gateway.equipment_fault", message=message), AlarmChangeKind.RAISED)
    await plant.store.commit(alarms.save(plant.store.keys, await alarms.load(plant.store), [change]))
    eve = await browser.logged_in("eve")
    for path in ("/", "/alarms", "/job?id=none"):
        assert ": edge " not in (await eve.get(path)).text, path
    assert "<p>Find its id.</p>" in (await eve.get("/job?id=none")).text
    assert "<p>Pour trouver son identifiant.</p>" in (await eve.get("/job?id=none", accept_language="fr")).text
    text = "List them: edge equipment list -v 1.2. The gateway repeats it."
    assert without_command(text) == "List them. The gateway repeats it."


async def test_every_running_card_has_its_controls(browser: Browser, plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.until_state("J2", JobState.RUNNING)
    alice = await browser.logged_in("alice")
    cards = (await alice.get("/")).text.split("<article")[1:]
    assert len(cards) > 1
    for card in cards:
        for control in ("#chart-title", "/pause", "/stop", "/abort"):
            assert control in card


async def test_lock_of_another_job_is_released_by_an_engineer(browser: Browser, plant: Plant) -> None:
    await lock_twice(plant)
    eve, alice, engineer = [await browser.logged_in(name) for name in ("eve", "alice", "max")]
    given = set()
    for page in ("/", "/job?id=L2"):
        assert "/api/v1/locks/delete" not in (await alice.get(page)).text
        assert "An engineer can release the lock." in (await alice.get(page)).text
        assert "release the lock" not in (await eve.get(page)).text
        given |= set(RELEASE.findall((await engineer.get(page)).text))
    (body,) = given
    assert "job L1" in (await alice.get("/")).text
    assert (await engineer.post("/api/v1/locks/delete", json.loads(body))).status == 200
    (lock,) = (await engineer.get("/api/v1/locks")).json["locks"]
    assert (lock["id"], lock["owner"]) == ("jig", "job L2")


async def test_removed_job_has_a_page_with_its_end(browser: Browser, plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J7"))
    await plant.ask(Cause.CANCEL, "J7")
    eve = await browser.logged_in("eve")
    reply = await eve.get("/job?id=J7")
    assert reply.status == 200
    assert '<span class="state outcome-removed"><span aria-hidden="true">⌫</span> Removed</span>' in reply.text
    assert '<time datetime="' in reply.text.partition("The job was removed")[2]
    assert (await eve.get("/job?id=J7", accept_language="de")).text.count("Entfernt") == 1


def test_ends_of_a_job_differ_by_word_sign_and_colour() -> None:
    names = [*(outcome.value for outcome in JobOutcome), "removed"]
    module = templates().get_template("parts.html").make_module({"t": str})
    signs = [module.ICONS[name] for name in names]  # type: ignore[attr-defined]
    style = Path("edge/features/page/static/page.css").read_text(encoding="utf-8")
    looks = [
        ";".join(re.findall(rf"\.outcome-{name}[^{{]*{{([^}}]*(?:background|color)[^}}]*)}}", style)) for name in names
    ]
    for language in ("en", "de", "fr"):
        assert len({labels(language)[f"outcome.{name}"] for name in names}) == len(names)
    assert all(looks)
    assert len(set(looks)) == len(set(signs)) == len(names)


DIALOGS = {
    "data-ask=": 'id="ask"',
    "data-all=": 'id="ask"',
    "data-shelve=": 'id="shelve"',
    "data-intervene=": 'id="intervene"',
    "data-resolve=": 'id="resolve"',
}
"""What a button asks for, and the dialog that asks it."""


async def test_each_page_has_the_dialogs_that_its_buttons_open(browser: Browser, plant: Plant) -> None:
    for number in range(2):
        stored = await alarms.load(plant.store)
        change = AlarmChange(replace(ALARM, id=f"a{number}"), AlarmChangeKind.RAISED)
        await plant.store.commit(alarms.save(plant.store.keys, stored, [change]))
    engineer = await browser.logged_in("max")
    found = set()
    for path in PAGES:
        page = (await engineer.get(path)).text
        for button, dialog in DIALOGS.items():
            if button in page:
                found.add(button)
                assert dialog in page, (path, button)
    assert {"data-ask=", "data-all=", "data-shelve="} <= found


async def test_dialogs_of_the_gateway_name_what_they_ask(browser: Browser) -> None:
    """The trust of a certificate was asked without its thumbprint, the text of maintenance as a comment."""
    engineer = await browser.logged_in("max")
    page = (await engineer.get("/gateway")).text
    assert re.search(rf'data-send="/api/v1/certificates/trust"[^>]* data-ask="[^"]* {"A" * 40}"', page)
    assert re.search(r'data-post="/api/v1/maintenance/on"[^>]* data-label="Message"', page)
    assert 'data-label="Meldung"' in (await engineer.get("/gateway", accept_language="de")).text


async def test_observer_gets_no_controls(browser: Browser) -> None:
    for name, shown in (("eve", False), ("alice", True)):
        person = await browser.logged_in(name)
        assert ("data-post=" in (await person.get("/job?id=J1")).text) is shown


async def test_unknown_job_and_address_have_a_page_with_advice(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    assert (await eve.get("/job?id=none")).status == 404
    assert (await eve.get("/none")).status == 404


async def test_login_by_form_works_without_javascript(browser: Browser) -> None:
    headers = {"origin": browser.origin, "content-type": "application/x-www-form-urlencoded"}
    body = f"name=eve&password={quote(PASSWORD)}&code=".encode()
    reply = await browser.send("POST", "/login", headers, body)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert (await browser.send("POST", "/login", headers, b"name=eve&password=x")).status == 401
    assert (await browser.send("POST", "/login", headers | {"origin": "http://evil"}, body)).status == 403
    assert (await browser.send("POST", "/login", headers, b"&".join([b"a=b"] * 20))).status == 422
    eve = Browser(browser.host, browser.port, reply.headers["set-cookie"].partition(";")[0])
    assert (await eve.send("POST", "/logout", {"origin": "http://evil"})).status == 403
    assert (await eve.send("POST", "/logout", {"origin": eve.origin})).status == 303
    assert (await eve.get("/")).headers["location"] == "/login"


@pytest.mark.parametrize(
    ("next_", "location"),
    [
        ("/job?id=J1", "/job?id=J1"),
        ("/help/docs/start.html", "/help/docs/start.html"),
        ("//evil.example/job", "/"),
        ("https://evil.example/jobs", "/"),
        ("/\\evil.example", "/"),
        ("/\\evil.example/jobs", "/"),
        ("/\t/evil.example/jobs", "/"),
        ("\t//evil.example/jobs", "/"),
        ("/\n/evil.example/jobs", "/"),
        ("///jobs", "/"),
        ("/api/v1/jobs", "/"),
        ("/jobs?x=\r\nset-cookie: a=b", "/"),
        ("/jobs?text=a b", "/jobs?text=a%20b"),
    ],
)
async def test_login_leads_back_to_the_page_and_to_no_other_site(browser: Browser, next_: str, location: str) -> None:
    headers = {"origin": browser.origin, "content-type": "application/x-www-form-urlencoded"}
    form = await browser.get(f"/login?next={quote(next_, safe='')}")
    assert ("evil.example/" in form.text, "<a" in form.text and 'class="button back"' in form.text) == (False, False)
    wrong = await browser.send("POST", "/login", headers, f"name=eve&password=x&next={quote(next_, safe='')}".encode())
    assert (wrong.status, "evil.example/" in wrong.text) == (401, False)
    body = f"name=eve&password={quote(PASSWORD)}&next={quote(next_, safe='')}".encode()
    reply = await browser.send("POST", "/login", headers, body)
    assert (reply.status, reply.headers["location"]) == (303, location)


async def test_way_back_from_the_login_stays_on_this_site(browser: Browser) -> None:
    """`/%09/evil.example/jobs` counted as a page of this gateway, and Back led to the other site."""
    eve = await browser.logged_in("eve")
    page = (await eve.get("/login?next=/%09/evil.example/jobs")).text
    assert '<a class="button back" href="/">' in page
    assert "evil.example" not in page


async def test_page_of_a_stranger_leads_to_a_login_that_leads_back(browser: Browser) -> None:
    assert (await browser.get("/job?id=J1")).headers["location"] == "/login?next=%2Fjob%3Fid%3DJ1"
    page = (await browser.get("/login?next=%2Fjob%3Fid%3DJ1")).text
    assert '<input type="hidden" name="next" value="/job?id=J1">' in page


async def test_api_is_described_with_every_operation_and_type(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    page = (await eve.get("/api")).text
    document = (await eve.get("/api/v1/openapi.json")).json
    assert [path for path in document["paths"] if f"<code>{path}</code>" not in page] == []
    assert [name for name in document["components"]["schemas"] if f'id="type-{name}"' not in page] == []
    links = re.findall(r'href="#([^"]+)"', page)
    assert [link for link in links if f'id="{link}"' not in page] == []
    assert not re.search(r'(src|href)="(https?:)?//', page)


async def test_large_page_is_compressed_for_a_browser_that_takes_it(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    plain, packed = await eve.get("/api"), await eve.get("/api", accept_encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    assert "content-encoding" not in (await eve.get("/", accept_encoding="gzip")).headers


async def test_first_view_is_less_than_150_kb(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    parts = ["/", "/static/page.css", "/static/page.js", "/static/icon.svg"]
    assert sum([len((await eve.get(path)).body) for path in parts]) < 150_000


async def test_first_view_uses_compiled_templates(services: WebServices, monkeypatch: pytest.MonkeyPatch) -> None:
    templates.cache_clear()
    app = build_app(services)
    monkeypatch.setattr(jinja2.Environment, "compile", None)
    async with serve(app, WebAddress("127.0.0.1", 0), ConnectionBounds(8, 8)) as url:
        browser = Browser("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
        assert (await browser.get("/login")).status == 200


def test_first_open_page_imports_nothing() -> None:
    check = "import sys, edge.features.page.server; sys.exit('anyio._backends._asyncio' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
