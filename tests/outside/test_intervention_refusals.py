"""Interventions by command, page, MES, RPC and OPC UA: reasons of refusals and audit records."""

import base64
import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.free_ports import free_port
from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.plant import TIGHTEN_ACTION, TIGHTENING
from tests.outside.servers import EDGE, wait_for
from tests.outside.test_decisions import CONTROL, _mes, _rpc
from tests.outside.test_users import make_certificate

INTERVENE = "com.github.aschamberger.microdcs.intervene.v1"
OPENING = "com.example.station.open.v1"
AWAITS_SECOND = 1 << 34
PASSWORD = "correct horse"
PEOPLE = {"anna": "engineer", "bert": "engineer", "olga": "operator", "eve": "observer"}
WAYS = ("command", "page", "mes", "rpc", "opcua")
METHODS = {
    "retry": ("RetryAction", ("Action", "Step")),
    "skip": ("SkipAction", ("Action", "Step")),
    "force": ("ForceTransition", ("Step", "Target")),
    "complete": ("CompleteStep", ("Step",)),
}
ATTENDED = TIGHTENING | {
    "actions": [TIGHTEN_ACTION | {"interventions": ["retry"]}],
    "interventions": ["complete", "force"],
}
DONE, WAITS = "done", "waits"

pytestmark = pytest.mark.long  # each command is a process of its own


@dataclass
class Site:
    """A plant with the page, RPC, people with tokens, and an OPC UA client that logs in as each of them."""

    plant: Plant
    socket: Path
    page: int
    client: subprocess.Popen[str]
    tokens: dict[str, str] = field(default_factory=dict)
    calls: int = 0

    def edge(self, *arguments: str, who: str = "", given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command with the token of a person."""
        token = {"EDGE_TOKEN": f"{who}:{self.tokens[who]}"} if who else {}
        return subprocess.run(
            [str(EDGE), *arguments, "--settings", str(self.plant.gateway.settings)],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={"PATH": os.environ["PATH"], "HOME": str(self.plant.gateway.directory)} | token,
        )

    def ask(self, way: str, who: str, kind: str, reason: str = "seen", job: str = "J1", **members: str) -> str:
        """Ask for an intervention; return `done`, `waits` or the refusal."""
        return {
            "command": self._by_command,
            "page": self._by_page,
            "mes": self._by_mes,
            "rpc": self._by_rpc,
            "opcua": self._by_opcua,
        }[way](who, job, kind, reason, members)

    def _by_command(self, who: str, job: str, kind: str, reason: str, members: dict[str, str]) -> str:
        names = METHODS[kind][1]
        named = [members[name] for name in names if name in members and (names[0], name) != ("Action", "Step")]
        step = ["--step", members["Step"]] if names[0] == "Action" and "Step" in members else []
        done = self.edge("jobs", kind, job, *named, *step, "--reason", reason, who=who)
        waits = "another person must ask for the same" in done.stdout
        return done.stderr or (WAITS if waits else DONE)

    def _by_page(self, who: str, job: str, kind: str, reason: str, members: dict[str, str]) -> str:
        body = {"kind": kind, "reason": reason} | {name.lower(): text for name, text in members.items()}
        status, text = self.http(who, "POST", f"/jobs/{job}/intervene", json.dumps(body))
        if status != 200:
            return text
        return WAITS if json.loads(text)["awaits_second"] else DONE

    def http(self, who: str, method: str, path: str, body: str = "") -> tuple[int, str]:
        """Call the API with the token of a person; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.page, timeout=60)
        credentials = base64.b64encode(f"{who}:{self.tokens[who]}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        connection.request(method, f"/api/v1{path}", body or None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def _message(self, who: str, job: str, kind: str, reason: str, members: dict[str, str]) -> dict[str, str]:
        self.calls += 1
        return {"JobOrderID": job, "Kind": kind, "By": who, "Reason": reason, **members}

    def _by_mes(self, *asked: Any) -> str:
        return _outcome(*_mes(self.plant, INTERVENE, self._message(*asked)))

    def _by_rpc(self, *asked: Any) -> str:
        message = self._message(*asked)
        answer = _rpc(self.socket, INTERVENE, message, id=f"call-{self.calls}")
        return _outcome(answer.get("mdcserrorkind"), answer.get("data"))

    def _by_opcua(self, who: str, job: str, kind: str, reason: str, members: dict[str, str]) -> str:
        method, names = METHODS[kind]
        texts = [job, *(members.get(name, "") for name in names), reason, *([None] if kind == "skip" else [])]
        assert self.client.stdin
        self.client.stdin.write(json.dumps([who, PASSWORD, CONTROL, f"{CONTROL}/{method}", texts]) + "\n")
        self.client.stdin.flush()
        answer = read_line(self.client)
        status = answer.get("outputs")
        return {str([1]): DONE, str([AWAITS_SECOND]): WAITS}.get(str(status), json.dumps(answer))

    def fail(self, attempt: int, job: str = "J1") -> None:
        """Answer the command of an attempt as failed."""
        wrench = self.plant.wrench
        wrench.client.wait(lambda: len(wrench.starts()) == attempt, f"attempt {attempt}", 60)
        failed = {"causationid": wrench.starts()[-1], "mdcserrorkind": "failed", "mdcserrormessage": "torque low"}
        wrench.client.publish(f"{wrench.topic}/answers", "", failed, confirm=None)
        wait_for(lambda: "waits for a person" in self.http("eve", "GET", f"/jobs/{job}")[1], "the failure")

    def audit(self) -> list[dict[str, Any]]:
        """Return the records of the audit trail, newest last."""
        records: list[dict[str, Any]] = json.loads(self.edge("audit", "list", "--last", "500", "--json").stdout)
        return records


def _outcome(kind: str | None, data: Any) -> str:
    if kind is not None:
        return f"{kind} {data}"
    status = data["ReturnStatus"]
    return {1: DONE, AWAITS_SECOND: WAITS}.get(status, json.dumps(data))


@pytest.fixture
def site(plant: Plant, tmp_path: Path) -> Iterator[Site]:
    settings = plant.gateway.settings
    page, socket, users = free_port(), tmp_path / "rpc.sock", tmp_path / "people"
    text = settings.read_text().replace('anonymous = "engineer"', 'anonymous = "observer"')
    text = text.replace("[opcua]\n", f'[opcua]\ntrusted = "{plant.gateway.directory}/trusted"\n')
    text = text.replace('"com.example.station.tighten.v1"', f'"com.example.station.tighten.v1", "{OPENING}"')
    settings.write_text(
        f'{text}\n[rpc]\nlisten = "unix://{socket}"\n[web]\nlisten = "127.0.0.1:{page}"\n'
        f'[users]\nfile = "{users}"\ncli = "login"\nsecond_person = ["complete"]\n'
    )
    make_certificate(tmp_path / "client")
    trusted = plant.gateway.directory / "trusted"
    trusted.mkdir()
    (trusted / "client.der").write_bytes((tmp_path / "client" / "own.der").read_bytes())
    plant.gateway.stop()
    plant.gateway.start()
    with opcua_client(plant.opcua_port, "calls", str(tmp_path / "client")) as client:
        found = Site(plant, socket, page, client)
        for name, role in PEOPLE.items():
            made = found.edge("users", "add", name, "--role", role, "--password-stdin", given=PASSWORD)
            assert made.returncode == 0, made.stderr
            token = found.edge("users", "token", name, "--json")
            found.tokens[name] = json.loads(token.stdout)["token"]
        yield found
        assert client.stdin
        client.stdin.close()


def _refuse_what_is_wrong(site: Site) -> None:
    """Ask for what is not allowed, not possible, without reason, of an unknown job, or without the role."""
    for way in WAYS:
        for expected, kind, members in (
            ("does not allow skip", "skip", {"Action": "tighten"}),
            ("is not active", "complete", {"Step": "Done"}),
            ("not started in this run", "retry", {"Action": "tighten", "Step": "Done"}),
            ("no transition leads", "force", {"Step": "Tighten", "Target": "Tighten"}),
        ):
            answer = site.ask(way, "anna", kind, **members)
            assert expected in answer or (way == "opcua" and '"outputs": [8]' in answer), (way, kind, answer)
        for reason in ("", " "):
            answer = site.ask(way, "anna", "retry", reason, Action="tighten")
            assert "reason" in answer.lower() or "BadInvalidArgument" in answer, (way, answer)
        assert site.ask(way, "anna", "retry", job="J9", Action="tighten") not in {DONE, WAITS}
    for way in ("command", "page", "opcua"):
        for who, kind, members in (
            ("eve", "retry", {"Action": "tighten"}),
            ("olga", "complete", {"Step": "Tighten"}),
            ("olga", "force", {"Step": "Tighten", "Target": "Done"}),
        ):
            answer = site.ask(way, who, kind, **members)
            assert any(text in answer for text in ("role", "forbidden", "BadUserAccessDenied")), (way, who, answer)


def _complete_by_two_people(site: Site) -> None:
    """Complete the step: the same person twice is one person, and a call of the MES cannot confirm."""
    for way in ("command", "page", "opcua"):
        assert site.ask(way, "anna", "complete", Step="Tighten") == WAITS
    for way in ("mes", "rpc"):
        assert "login at the gateway" in site.ask(way, "bert", "complete", Step="Tighten")
    assert site.ask("page", "bert", "complete", "it is tight", Step="Tighten") == DONE


def _check_what_remains(site: Site, reasons: list[str]) -> None:
    """Look for people and reasons in the job response, the history, the replay and the audit trail."""
    mes = site.plant.mes
    mes.client.wait(lambda: "it is tight" in json.dumps(mes.result("J1")), "the result", 60)
    parameters = {value["ID"]: value for value in mes.result("J1")["JobResponseData"]}
    notes = [
        {subparameter["ID"]: subparameter["Value"] for subparameter in note["Subparameters"]}
        for note in parameters["Interventions"]["Subparameters"]
    ]
    assert [note["reason"] for note in notes if note["kind"] == "retry"] == reasons
    assert (notes[-1]["kind"], notes[-1]["second"], notes[-1]["second_reason"]) == ("complete", "bert", "it is tight")
    history = site.edge("jobs", "history", "J1").stdout
    assert [text for text in (*reasons, "it is tight") if text not in history] == []
    assert site.edge("jobs", "replay", "J1").returncode == 0
    wait_for(lambda: any("it is tight" in entry.get("comment", "") for entry in site.audit()), "the audit record")
    records = site.audit()
    assert site.edge("audit", "verify").returncode == 0
    for reason in reasons:
        (taken,) = [record for record in records if reason in record.get("comment", "") and record["status"] == "Good"]
        assert taken["user"].partition(" (")[0].endswith("olga"), taken
    refused = [record for record in records if record["status"] != "Good" and "J1" in record["subject"]]
    assert {entry["user"].partition(" (")[0] for entry in refused} >= {"anna", "eve", "olga"}, refused


def test_refused_and_executed_interventions_are_reported_and_audited(site: Site) -> None:
    plant = site.plant
    plant.mes.configure(recipe=ATTENDED)
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    site.fail(1)
    _refuse_what_is_wrong(site)
    assert len(plant.wrench.starts()) == 1
    assert "Interventions" not in json.dumps(plant.mes.result("J1"))
    reasons = []
    for attempt, way in enumerate(WAYS, 2):
        reasons.append(f"bit changed {attempt}")
        assert site.ask(way, "olga", "retry", reasons[-1], Action="tighten") == DONE
        site.fail(attempt)
    _complete_by_two_people(site)
    plant.mes.wait_for_state("J1", "Ended", 60)
    for way in WAYS:
        assert site.ask(way, "anna", "retry", "too late", Action="tighten") not in {DONE, WAITS}
    _check_what_remains(site, reasons)


def test_failed_pulse_retried_over_all_interfaces_starts_once(site: Site) -> None:
    plant = site.plant
    opening = {"name": "open", "qualifier": "P0", "step": "Tighten", "type_id": OPENING}
    recipe = {
        "steps": [{"name": "Tighten", "initial": True}, {"name": "Done"}, {"name": "Lift"}],
        "transitions": [
            {"source": source, "target": target, "condition": "always"}
            for source, target in (("Tighten", "Done"), ("Done", "Lift"))
        ],
        "actions": [TIGHTEN_ACTION | opening | {"interventions": ["retry"]}],
    }
    plant.mes.configure(recipe=recipe)
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    site.fail(1)
    why = site.edge("jobs", "why", "J1").stdout
    assert "allowed: edge jobs retry J1 open --step Tighten --reason" in why
    with ThreadPoolExecutor() as pool:
        futures = [pool.submit(site.ask, way, "olga", "retry", "air is on", Action="open") for way in WAYS]
        answers = [future.result() for future in futures]
    assert answers.count(DONE) == 1, answers
    plant.wrench.client.wait(lambda: len(plant.wrench.starts()) == 2, "the retry", 60)
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert len(plant.wrench.starts()) == 2
    assert site.edge("jobs", "replay", "J1").returncode == 0
