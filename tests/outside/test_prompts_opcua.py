"""Prompts in OPC UA: node-opcua and a plain client see them and answer them by role; exactly one answer counts."""

import asyncio
import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from asyncua.ua.uaerrors import UaStatusCodeError

from tests.opcua_client import patient_client
from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, wait_for
from tests.outside.test_decisions import _edge
from tests.outside.test_opcua_alarms import AlarmViewer, viewer
from tests.outside.test_prompts import (
    CHOOSING,
    PEOPLE,
    asking,
    prompts,
    resolved_by,
    result,
    wait_for_prompt,
)
from tests.outside.test_users import make_certificate

pytestmark = pytest.mark.slow

RESPOND = "i=9069"
ANSWER = "ns=7;s=EnterPromptType/AnswerPrompt"
FIELDS = ["DialogState.Id", "ResponseOptionSet", "LastResponse", "ConditionId", "ClientUserId", "Retain"]
PASSWORD = "correct horse"
URI = "urn:example:client"


@pytest.fixture
def further_settings() -> str:
    """The people at the station."""
    return PEOPLE


def condition(prompt: dict[str, Any]) -> str:
    """Return the NodeId of a prompt."""
    return f"ns=10;s={prompt['id']}"


def respond(client: AlarmViewer, prompt: dict[str, Any], index: int) -> Any:
    return client.ask("call", object=condition(prompt), method=RESPOND, inputs=[["Int32", index]])


def test_node_opcua_sees_a_dialog_and_answers_it(plant: Plant) -> None:
    plant.mes.configure(recipe=CHOOSING)
    with viewer(plant.opcua_port) as client:
        client.ask("monitor", where="DialogConditionType", fields=FIELDS)
        assert plant.mes.start_job("J1").status == 1
        event = client.event(DialogState__Id=True)
        (prompt,) = prompts(plant)
        assert event["ConditionId"] == condition(prompt)
        assert [option["text"] for option in event["ResponseOptionSet"]] == ["Ok", "Defective"]
        assert respond(client, prompt, 7) == "BadDialogResponseInvalid"
        assert respond(client, prompt, 1) == "Good"
        ended = client.event(DialogState__Id=False)
        assert (ended["LastResponse"], ended["Retain"], ended["ClientUserId"]) == (1, False, "anonymous")
        assert respond(client, prompt, 1) in {"BadDialogNotActive", "BadNodeIdUnknown"}
    assert result(plant)["ask"]["Subparameters"] == [{"ID": "choice", "Value": "defective"}]
    assert resolved_by(plant) == ["anonymous"]


def test_a_client_that_connects_late_refreshes_and_answers(plant: Plant) -> None:
    plant.mes.configure(recipe=asking("confirm"))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    with viewer(plant.opcua_port) as client:
        made = client.ask("monitor", fields=["EventType", *FIELDS])
        client.ask("call", object="i=2782", method="i=3875", inputs=[["UInt32", made["subscription"]]])
        assert client.event(EventType="ns=0;i=2830")["ConditionId"] == condition(prompt)
        done = _edge(plant, "prompts", "answer", prompt["id"])
        assert done.returncode == 0, done.stderr
        # The answer of the command line is an event for the client, and its own comes too late.
        assert client.event(DialogState__Id=False)["LastResponse"] == 0
        assert respond(client, prompt, 0) in {"BadDialogNotActive", "BadNodeIdUnknown"}
    assert len(resolved_by(plant)) == 1


ENTERING = asking(
    "enter",
    fields=[{"name": "mass", "type": "number", "unit": "kg", "max": 9}, {"name": "serial", "type": "scan"}],
    second_person=True,
    role="operator",
)


class People:
    """The users of the gateway, each with a session of a plain client, encrypted."""

    def __init__(self, plant: Plant, directory: Path) -> None:
        self._plant = plant
        self._client = directory / "client"
        users = directory / "people"
        text = plant.gateway.settings.read_text().replace('anonymous = "engineer"', 'anonymous = "observer"')
        trusted = directory / "trusted"
        text = text.replace("[opcua]\n", f'[opcua]\ntrusted = "{trusted}"\n')
        plant.gateway.settings.write_text(f'{text}\n[users]\nfile = "{users}"\n')
        make_certificate(self._client)
        trusted.mkdir()
        (trusted / "client.der").write_bytes((self._client / "own.der").read_bytes())
        plant.gateway.stop()
        plant.gateway.start()

    def add(self, name: str, role: str) -> None:
        """Add a user with the password of all."""
        command = [str(EDGE), "users", "add", name, "--role", role, "--password-stdin"]
        settings = self._plant.gateway.settings
        subprocess.run([*command, "--settings", str(settings)], input=PASSWORD, text=True, check=True, timeout=60)

    def call(self, user: str, prompt: dict[str, Any], method: str, *arguments: ua.Variant) -> Any:
        """Call a method of a prompt as a user; return the outputs, or the name of the status."""
        return asyncio.run(self._call(user, condition(prompt), method, arguments))

    async def _call(self, user: str, node: str, method: str, arguments: Any) -> Any:
        client = patient_client(f"opc.tcp://127.0.0.1:{self._plant.opcua_port}")
        client.application_uri = URI
        files = self._client / "own.der", self._client / "own.pem"
        server = (self._plant.gateway.directory / "pki" / "own.der").read_bytes()
        mode = ua.MessageSecurityMode.SignAndEncrypt
        await client.set_security(SecurityPolicyBasic256Sha256, *files, server_certificate=server, mode=mode)
        client.set_user(user)
        client.set_password(PASSWORD)
        async with client:
            try:
                return await client.get_node(node).call_method(ua.NodeId.from_string(method), *arguments)
            except UaStatusCodeError as error:
                return ua.StatusCode(error.code).name


def texts(*values: str) -> ua.Variant:
    return ua.Variant(list(values), ua.VariantType.String, is_array=True)


def test_two_users_of_opc_ua_enter_the_same_values(plant: Plant, tmp_path: Path) -> None:
    people = People(plant, tmp_path)
    for name, role in (("anna", "operator"), ("bert", "operator"), ("eve", "observer")):
        people.add(name, role)
    plant.mes.configure(recipe=ENTERING)
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    values = texts("mass", "serial"), texts("5,5", "S1")
    assert people.call("eve", prompt, ANSWER, *values) == "BadUserAccessDenied"
    assert people.call("anna", prompt, ANSWER, texts("mass", "serial"), texts("12", "S1")) == "BadInvalidArgument"
    assert people.call("anna", prompt, ANSWER, *values) is True
    assert people.call("anna", prompt, ANSWER, *values) is True, "the same person does not count twice"
    assert people.call("bert", prompt, ANSWER, *values) is False
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert resolved_by(plant) == ["anna and bert"]
    records = json.loads(_edge(plant, "audit", "list", "--last", "50", "--json").stdout)
    answers = [(record["user"], record["status"]) for record in records if record["action"] == "AnswerPrompt"]
    assert answers[:2] == [("eve", "BadUserAccessDenied"), ("anna", "BadInvalidArgument")]


def test_a_dialog_for_an_engineer_refuses_operators(plant: Plant, tmp_path: Path) -> None:
    people = People(plant, tmp_path)
    people.add("olga", "operator")
    people.add("emil", "engineer")
    plant.mes.configure(recipe=asking("confirm", role="engineer"))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    first = ua.Variant(0, ua.VariantType.Int32)
    assert people.call("olga", prompt, RESPOND, first) == "BadUserAccessDenied"
    assert people.call("emil", prompt, RESPOND, first) is None
    assert resolved_by(plant) == ["emil"]


def test_opc_ua_does_not_sign(plant: Plant, tmp_path: Path) -> None:
    people = People(plant, tmp_path)
    people.add("emil", "engineer")
    fields = [{"name": "serial", "type": "scan"}]
    first = ua.Variant(0, ua.VariantType.Int32)
    ways = {"confirm": (RESPOND, (first,)), "enter": (ANSWER, (texts("serial"), texts("S1")))}
    for kind, (method, arguments) in ways.items():
        plant.mes.configure(recipe=asking(kind, sign="pin", **({"fields": fields} if kind == "enter" else {})))
        assert plant.mes.start_job(kind).status == 1
        prompt = wait_for_prompt(plant)
        assert people.call("emil", prompt, method, *arguments) == "BadUserAccessDenied"
        assert prompts(plant) == [prompt]
        assert plant.mes.call("Abort", {"JobOrderID": kind}).status == 1
        wait_for(lambda: not prompts(plant), "the prompt is over")


def _respond(plant: Plant, prompt: dict[str, Any], index: int) -> str:
    """Respond with a plain client; return the name of the status, or `lost` where the gateway did not answer."""

    async def call() -> str:
        client = Client(f"opc.tcp://127.0.0.1:{plant.opcua_port}", timeout=5)
        try:
            async with client:
                node = client.get_node(condition(prompt))
                await node.call_method(ua.NodeId(9069), ua.Variant(index, ua.VariantType.Int32))
        except UaStatusCodeError as error:
            return str(ua.StatusCode(error.code).name)
        except (OSError, TimeoutError, asyncio.CancelledError, ua.UaError):
            return "lost"
        return "Good"

    return asyncio.run(call())


@pytest.mark.parametrize("point", ["decided", "committed"])
def test_an_answer_during_a_kill_counts_exactly_once(plant: Plant, point: str) -> None:
    plant.mes.configure(recipe=CHOOSING)
    answers = []
    for count in range(1, 5):
        job_id = f"J{count}"
        assert plant.mes.start_job(job_id).status == 1
        prompt = wait_for_prompt(plant)
        plant.gateway.stop()
        plant.gateway.environment["EDGE_FAULT"] = f"{point}:{count}"
        with contextlib.suppress(AssertionError):
            plant.gateway.start()
        answers.append(_respond(plant, prompt, 0))
        plant.gateway.kill()
        del plant.gateway.environment["EDGE_FAULT"]
        plant.gateway.start()
        # The client does not know whether its answer arrived: it asks again, with another choice.
        wait_for(lambda prompt=prompt: _respond(plant, prompt, 1) != "lost", "the client is answered", 60)  # type: ignore[misc]
        plant.mes.wait_for_state(job_id, "Ended", 60)
        assert len(resolved_by(plant, job_id)) == 1
        chosen = result(plant, job_id)["ask"]["Subparameters"][0]["Value"]
        assert chosen == "ok" if answers[-1] == "Good" else chosen in {"ok", "defective"}
    assert "lost" in answers, answers
    assert prompts(plant) == []
