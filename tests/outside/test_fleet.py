"""Signed commands over the broker: executed once, and refused by the policy of the component."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import EDGE, PREFIX, Gateway

PASSWORD = "a long password\n"


def call(gateway: Gateway, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(EDGE), *arguments[:2], "--settings", str(gateway.settings), *arguments[2:]]
    return subprocess.run(command, input=PASSWORD, capture_output=True, text=True, check=False, timeout=120)


def send(gateway: Gateway, key: Path, *command: str) -> dict[str, Any]:
    answer = call(
        gateway,
        "fleet",
        "send",
        "--json",
        "--to",
        "other",
        "--key",
        str(key),
        "--password-stdin",
        "--wait",
        "60",
        *command,
    )
    found: dict[str, Any] = json.loads(answer.stdout)
    (result,) = found["results"]
    return {"id": found["id"], **result}


@pytest.mark.long  # each command is a process of its own
def test_signed_commands_are_executed_once_and_as_the_policy_allows(plant: Plant, tmp_path: Path) -> None:
    other, keys, key = plant.new_gateway("other", None), tmp_path / "keys", tmp_path / "anna.pem"
    (other.directory / "conf.d").mkdir()
    (other.directory / "conf.d" / "fleet.toml").write_text(
        f'[fleet]\nlisten = "mqtt"\ntopic_prefix = "{PREFIX}"\nkeys = "{keys}"\nallow = ["status", "audit"]\n'
    )
    other.start()
    create = [str(EDGE), "fleet", "keys", "create", "anna", str(key), "--password-stdin"]
    assert subprocess.run(create, input=PASSWORD, text=True, check=False).returncode == 0
    subprocess.run([EDGE, "fleet", "keys", "add", key.with_suffix(".jwk"), "--settings", other.settings], check=True)
    status = send(other, key, "status")
    assert status["state"] == "successful"
    assert json.loads(status["output"])["component"]["pid"] == other.pid
    assert "not_allowed" in send(other, key, "jobs", "list")["reason"]
    attacker = MqttClient(plant.broker.port, "attacker")
    attacker.connect()
    attacker.subscribe(f"{PREFIX}/fleet/commands/+")
    attacker.wait(lambda: len(attacker.received) > 1, "the commands are retained")
    for received in list(attacker.received):
        attacker.publish(f"{PREFIX}/fleet/commands/again", received.payload, {})
    verified = send(other, key, "audit", "verify")
    assert json.loads(verified["output"])["faults"] == []
    done = json.loads(other.cli("audit", "list", "--kind", "fleet.call", "--json"))
    assert [value["action"] for value in done] == ["status", "jobs list", "audit verify"]
    attacker.close()
