"""The station page with a plain HTTP client: login, pause of a job, refused cross-site request."""

import http.client
import json
import re
import subprocess
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.free_ports import free_port
from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, wait_for

pytestmark = pytest.mark.slow

PASSWORD = "correct horse"


class Page:
    """A browser without JavaScript."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
        """Send a request; return status and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Cookie": self.cookie}
        connection.request(method, path, body or None, sent)
        answer = connection.getresponse()
        if cookie := answer.getheader("Set-Cookie"):
            self.cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in SimpleCookie(cookie).items())
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def log_in(self, name: str, password: str = PASSWORD) -> int:
        """Send the form of the login."""
        form = urlencode({"name": name, "password": password, "code": ""})
        return self.ask("POST", "/login", form, Origin=self.origin, Content_Type="application/x-www-form-urlencoded")[0]

    def call(self, path: str, **headers: str) -> tuple[int, Any]:
        """Call an operation of the API."""
        given = {"Origin": self.origin, "Content_Type": "application/json"} | headers
        status, text = self.ask("POST", f"/api/v1{path}", "{}", **given)
        return status, json.loads(text)

    @property
    def origin(self) -> str:
        """The origin of the page."""
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def page(plant: Plant) -> Page:
    """The page of a gateway that has the operator alice and the observer eve."""
    settings = plant.gateway.settings
    port, users = free_port(), settings.parent / "people"
    settings.write_text(f'{settings.read_text()}\n[web]\nlisten = "127.0.0.1:{port}"\n[users]\nfile = "{users}"\n')
    for name, role in (("alice", "operator"), ("eve", "observer")):
        command = [str(EDGE), "users", "add", name, "--role", role, "--password-stdin", "--settings", str(settings)]
        subprocess.run(command, input=PASSWORD, text=True, check=True, capture_output=True)
    plant.gateway.stop()
    plant.gateway.start()
    found = Page(port)
    wait_for(lambda: _is_served(found), "the page is served", 60)
    return found


def test_operator_pauses_a_job_on_the_page_and_others_cannot(plant: Plant, page: Page) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    assert page.call("/jobs/J1/pause")[1]["kind"] == "login_required"
    assert page.log_in("eve") == 303
    assert page.call("/jobs/J1/pause")[1]["kind"] == "forbidden"
    assert page.log_in("alice") == 303
    assert page.call("/jobs/J1/pause", Origin="http://evil.example")[1]["kind"] == "other_site"
    assert "J1" in page.ask("GET", "/")[1]
    assert page.call("/jobs/J1/pause")[0] == 200
    plant.mes.wait_for_state("J1", "Interrupted", 60)
    assert "Paused" in page.ask("GET", "/job?id=J1")[1]
    assert page.call("/jobs/J1/resume")[0] == 200
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    records = plant.gateway.cli("audit", "list", "--json")
    assert "web.login" in records
    assert "web.refused" in records


HOUR = 3600.0


def _waited(detail: str) -> list[float]:
    """Return for how many seconds a job waits for each of the things that it waits for."""
    return [wait["seconds"] for wait in json.loads(detail)["waits"]["words"] if wait["seconds"] is not None]


def _hold_the_tool(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)


def test_page_counts_seconds_by_the_clock_of_the_jobs(plant: Plant, page: Page) -> None:
    """It said "3600 s" of a command sent just now: by the wall clock, which was set during the job."""
    _hold_the_tool(plant)
    plant.gateway_clock.set(HOUR)
    assert page.log_in("eve") == 303
    (seconds,) = _waited(page.ask("GET", "/api/v1/jobs/J1")[1])
    assert 0 <= seconds < HOUR / 60


def test_seconds_are_right_where_the_clock_of_the_store_differs(plant: Plant, page: Page) -> None:
    plant.gateway.stop()
    plant.store_clock.set(-HOUR)
    plant.gateway.start()
    wait_for(lambda: _is_served(page), "the page is served", 60)
    _hold_the_tool(plant)
    assert page.log_in("eve") == 303
    shown = page.ask("GET", "/api/v1/jobs/J1")[1]
    for detail in (shown, plant.gateway.cli("jobs", "why", "J1", "--json")):
        (seconds,) = _waited(detail)
        assert 0 <= seconds < HOUR / 60
    for command in (("jobs", "why", "J1"), ("jobs", "show", "J1"), ("draw", "--job", "J1")):
        text = plant.gateway.cli(*command)
        assert "Tighten" in text
        assert not re.search(r"\d h \d", text), "an hour"


def _is_served(page: Page) -> bool:
    try:
        return page.ask("GET", "/login")[0] == 200
    except ConnectionError:
        return False
