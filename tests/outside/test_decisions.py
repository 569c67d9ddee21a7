"""An operator decides about physical work by command, MES, RPC and OPC UA, with role, reason and audit."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.servers import ROOT, SCOPE, wait_for

pytestmark = pytest.mark.slow

RESOLVE = "com.github.aschamberger.microdcs.resolve.v1"
RELEASE = "com.github.aschamberger.microdcs.release.v1"
CONTROL = f"ns=8;s={SCOPE}/MachineryBuildingBlocks/JobManagement/JobOrderControl"
WRENCH = "ns=1;s=Gateway/Equipment/wrench"
GOOD, BAD_USER_ACCESS_DENIED = "Good", "BadUserAccessDenied"
DATA = {"torque": {"value": 85.2, "unit": "Nm"}}
REASON = "bolt seen tight"

Decide = Callable[[Plant, Path], None]


def _mes(plant: Plant, event_type: str, data: object) -> tuple[str | None, Any]:
    """Call as the MES; return the kind of the error and the data."""
    correlation = plant.mes.send(event_type, data)
    plant.mes.client.wait(lambda: plant.mes.answer_to(correlation), f"an answer to {event_type}", 60)
    received = plant.mes.answer_to(correlation)
    assert received
    return received.attributes.get("mdcserrorkind"), json.loads(received.payload)


def _rpc(socket_path: Path, event_type: str, data: object, **attributes: str) -> dict[str, Any]:
    """Call as a sidecar, written from docs/reference/rpc.md; return the answering event."""
    named = {"specversion": "1.0", "id": "r1", "source": "/sidecar", "type": event_type, "subject": SCOPE}
    event = named | {"data": data} | attributes
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(socket_path))
        client.sendall(msgpack.packb([0, 1, "publish", [event]]))
        unpacker = msgpack.Unpacker()
        while True:
            # Notifications of events come in between.
            unpacker.feed(client.recv(65_536))
            for message in unpacker:
                if message[:2] == [1, 1]:
                    assert message[2] is None, message
                    answer: dict[str, Any] = message[3][0]
                    return answer


def _opcua(plant: Plant, object_id: str, method: str, *texts: str | None) -> Any:
    arguments = (object_id, f"{object_id}/{method}", json.dumps(texts))
    with opcua_client(plant.opcua_port, "call", *arguments) as client:
        return read_line(client)


def _edge(plant: Plant, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge", *arguments, "--settings", str(plant.gateway.settings)]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def _resolve_call(**fields: object) -> dict[str, object]:
    call = {"JobOrderID": "J1", "Action": "tighten", "Resolution": "done", "By": "anna", "Reason": REASON, "Data": DATA}
    return call | fields


def _resolve_by_command(plant: Plant, _: Path) -> None:
    refused = _edge(plant, "jobs", "resolve", "J1", "tighten", "--done")
    assert (refused.returncode, "--reason" in refused.stderr) == (2, True)
    done = _edge(plant, "jobs", "resolve", "J1", "tighten", "--done", "--data", json.dumps(DATA), "--reason", REASON)
    assert done.returncode == 0, done.stderr


def _resolve_by_mes(plant: Plant, _: Path) -> None:
    assert _mes(plant, RESOLVE, _resolve_call(Reason=" "))[0] == "invalid_payload"
    assert _mes(plant, RESOLVE, _resolve_call()) == (None, {"ReturnStatus": 1})


def _resolve_by_rpc(_plant: Plant, socket_path: Path) -> None:
    assert _rpc(socket_path, RESOLVE, _resolve_call())["data"] == {"ReturnStatus": 1}


def _resolve_by_opcua(plant: Plant, _: Path) -> None:
    assert _opcua(plant, CONTROL, "ResolveAction", "J1", "tighten", "done", " ", None)["status"] == "BadInvalidArgument"
    texts = ("J1", "tighten", "done", REASON, json.dumps(DATA))
    assert _opcua(plant, CONTROL, "ResolveAction", *texts) == {"status": GOOD, "outputs": [1]}


def _audit(plant: Plant, reason: str) -> list[dict[str, Any]]:
    """Return the records of the audit trail about a decision with this reason that was taken."""
    records = json.loads(_edge(plant, "audit", "list", "--json").stdout)
    return [record for record in records if reason in record.get("comment", "") and record["status"] == "Good"]


def _with_rpc(plant: Plant, tmp_path: Path) -> Path:
    socket_path = tmp_path / "rpc.sock"
    settings = plant.gateway.settings
    settings.write_text(f'{settings.read_text()}\n[rpc]\nlisten = "unix://{socket_path}"\n')
    plant.gateway.stop()
    plant.gateway.start()
    return socket_path


@pytest.mark.parametrize(
    "decide",
    [_resolve_by_command, _resolve_by_mes, _resolve_by_rpc, _resolve_by_opcua],
    ids=lambda value: value.__name__,
)
def test_an_unknown_outcome_is_resolved_with_reason_and_audit(plant: Plant, tmp_path: Path, decide: Decide) -> None:
    socket_path = _with_rpc(plant, tmp_path) if decide is _resolve_by_rpc else tmp_path
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    (command,) = plant.wrench.starts()
    plant.wrench.client.publish(
        f"{plant.wrench.topic}/answers", "", {"causationid": command, "mdcserrorkind": "unknown"}, confirm=None
    )
    wait_for(lambda: ": unknown" in _edge(plant, "jobs", "why", "J1").stdout, "the outcome is unknown")
    if decide is _resolve_by_command:
        wait_for(lambda: "gateway.outcome_unknown" in _edge(plant, "alarms", "list", "--json").stdout, "its alarm")
    decide(plant, socket_path)
    plant.mes.wait_for_state("J1", "Ended", 60)
    plant.mes.client.wait(lambda: plant.mes.result("J1"), "the result of the job", 60)
    assert REASON in json.dumps(plant.mes.result("J1"))
    wait_for(lambda: _audit(plant, REASON), "the audit record of the decision")
    (record,) = _audit(plant, REASON)
    assert "J1" in record["subject"]
    assert record["user"]
    assert len(plant.wrench.starts()) == 1


def _release_call(**fields: object) -> dict[str, object]:
    return {"Equipment": "wrench", "By": "anna", "Reason": "air cut off"} | fields


def _release_by_command(plant: Plant, _: Path) -> None:
    assert _edge(plant, "equipment", "release", "wrench").returncode == 2
    done = _edge(plant, "equipment", "release", "wrench", "--reason", "air cut off")
    assert done.returncode == 0, done.stderr


def _release_by_mes(plant: Plant, _: Path) -> None:
    assert _mes(plant, RELEASE, _release_call(Reason=""))[0] == "invalid_payload"
    assert _mes(plant, RELEASE, _release_call(Equipment="wretch"))[0] == "unknown_equipment"
    kind, answer = _mes(plant, RELEASE, _release_call())
    assert (kind, answer["ReturnStatus"], len(answer["Released"])) == (None, 1, 1)
    assert _mes(plant, RELEASE, _release_call())[0] == "nothing_open"


def _release_by_rpc(_plant: Plant, socket_path: Path) -> None:
    answer = _rpc(socket_path, RELEASE, _release_call())
    assert [value["Phase"] for value in answer["data"]["Released"]] == ["stop"]


def _release_by_opcua(plant: Plant, _: Path) -> None:
    assert _opcua(plant, WRENCH, "ReleaseStops", "", "air cut off") == {"status": GOOD, "outputs": [1]}
    assert _opcua(plant, WRENCH, "ReleaseStops", "", "air cut off")["status"].startswith("Uncertain")


@pytest.mark.parametrize(
    "decide",
    [_release_by_command, _release_by_mes, _release_by_rpc, _release_by_opcua],
    ids=lambda value: value.__name__,
)
def test_an_open_stop_is_released_with_reason_and_audit(plant: Plant, tmp_path: Path, decide: Decide) -> None:
    socket_path = _with_rpc(plant, tmp_path) if decide is _release_by_rpc else tmp_path
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    assert plant.mes.call("Abort", {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Aborted", 60)
    wait_for(lambda: _edge(plant, "equipment", "show", "wrench").stdout, "the gateway reports the equipment")
    decide(plant, socket_path)
    wait_for(lambda: _audit(plant, "air cut off"), "the audit record of the release")
    (record,) = _audit(plant, "air cut off")
    assert "wrench" in record["subject"]


def test_decision_of_an_observer_over_opc_ua_is_refused(plant: Plant) -> None:
    settings = plant.gateway.settings
    settings.write_text(settings.read_text().replace('anonymous = "engineer"', 'anonymous = "observer"'))
    plant.gateway.stop()
    plant.gateway.start()
    texts = ("J1", "tighten", "done", REASON, None)
    assert _opcua(plant, CONTROL, "ResolveAction", *texts)["status"] == BAD_USER_ACCESS_DENIED
    assert _opcua(plant, WRENCH, "ReleaseStops", "", "air cut off")["status"] == BAD_USER_ACCESS_DENIED
