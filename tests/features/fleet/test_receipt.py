"""Signed commands over a real broker to fifty components; some are offline, untrusting or have a wrong clock."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from edge.access.audit_trail import find_faults, open_trail
from edge.cli import main
from edge.config import MqttSettings, RedisSettings
from edge.features.fleet.allowed_commands import FleetPolicy
from edge.features.fleet.command_service import FleetService
from edge.features.fleet.receipt import FleetInbox, FleetTopics
from edge.features.fleet.signature import FleetCommand, PublicKey
from edge.features.fleet.signing_keys import new_key, read_public
from edge.foundation.instant import now_ms
from edge.links.mqtt import keep_session
from edge.store import audit
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil

pytestmark = pytest.mark.slow

COMPONENTS = 50
OFFLINE = {f"gw-{number:02}" for number in range(10)}
REVOKED = {"gw-10", "gw-11"}
WRONG_CLOCK = "gw-12"
PASSWORD = "a long password"
DAY_MS = 24 * 3600 * 1000


class Plant:
    """Fifty components with a store each, on one broker."""

    def __init__(self, mqtt: MqttSettings, redis: RedisSettings, prefix: str, key: PublicKey) -> None:
        self.executed: dict[str, int] = {}
        self._mqtt = mqtt
        self._redis = redis
        self._prefix = prefix
        self._key = key

    def redis_of(self, name: str) -> RedisSettings:
        return replace(self._redis, prefix=f"{self._redis.prefix}-{name}")

    @asynccontextmanager
    async def component(self, name: str) -> AsyncIterator[None]:
        """Serve commands at a component."""

        async def load_keys() -> Mapping[str, PublicKey]:
            return {self._key.kid: replace(self._key, revoked=name in REVOKED)}

        async def execute(command: FleetCommand, *_: str) -> str:
            self.executed[name] = self.executed.get(name, 0) + 1
            return f"{command.cmd} of {name}"

        def clock() -> int:
            return now_ms() - (DAY_MS if name == WRONG_CLOCK else 0)

        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(self.redis_of(name), name))
            trail = await stack.enter_async_context(open_trail(store, name, 1000, clock))
            policy = FleetPolicy(name, {"line": str(int(name[3:]) % 2)}, ("status",))
            service = FleetService(store, policy, load_keys, execute, clock, trail.record)
            session = await stack.enter_async_context(keep_session(self._mqtt, f"{self._prefix}-{name}"))
            await session.wait_connected(30)
            await FleetInbox(session, service, self._prefix).open()
            yield


async def records_of(store: Store) -> list[dict[str, Any]]:
    """Return the audit records of a store, whose chain must be complete."""
    sealed = [sealed_record async for sealed_record in audit.read_all(store)]
    assert list(find_faults(sealed, await audit.load_head(store), 1000)) == []
    return [json.loads(sealed_record.text) for sealed_record in sealed]


@pytest.fixture
def settings_file(tmp_path: Path, mqtt: MqttSettings, redis: RedisSettings, unique: str) -> Path:
    file = tmp_path / "edge.toml"
    file.write_text(
        f'[redis]\nurl = "{redis.url}"\nprefix = "{redis.prefix}"\n[mqtt]\nurl = "{mqtt.url}"\n'
        f'[fleet]\nlisten = "mqtt"\ntopic_prefix = "{unique}"\n'
    )
    return file


async def edge(settings_file: Path, *arguments: str) -> dict[str, Any]:
    command = [*arguments[:2], "--settings", str(settings_file), "--json", *arguments[2:]]
    answer = await asyncio.to_thread(CliRunner().invoke, main, command, f"{PASSWORD}\n")
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


async def test_command_reaches_fifty_components_including_late_ones(
    mqtt: MqttSettings, redis: RedisSettings, unique: str, settings_file: Path, tmp_path: Path, wait_until: WaitUntil
) -> None:
    key_file = tmp_path / "anna.pem"
    create = ["fleet", "keys", "create", "anna", str(key_file), "--password-stdin"]
    assert (await asyncio.to_thread(CliRunner().invoke, main, create, f"{PASSWORD}\n")).exit_code == 0
    plant = Plant(mqtt, redis, unique, read_public((tmp_path / "anna.jwk").read_bytes()))
    names = [f"gw-{number:02}" for number in range(COMPONENTS)]
    async with AsyncExitStack() as stack:
        present = [name for name in names if name not in OFFLINE]
        await asyncio.gather(*(stack.enter_async_context(plant.component(name)) for name in present))
        sent = await edge(
            settings_file, "fleet", "send", "--all", "--key", str(key_file), "--password-stdin", "--wait", "5", "status"
        )
        results = {result["component"]: result for result in sent["results"]}
        assert results.keys() == set(present)
        refused = {name: result["reason"] for name, result in results.items() if result["state"] == "refused"}
        assert refused.keys() == REVOKED | {WRONG_CLOCK}
        assert all("key revoked" in refused[name] for name in REVOKED)
        assert "check the clocks" in refused[WRONG_CLOCK]
        successful = {name for name, result in results.items() if result["state"] == "successful"}
        assert len(successful) == COMPONENTS - len(OFFLINE) - 3
        assert all(results[name]["output"] == f"status of {name}" for name in successful)
        for name in sorted(OFFLINE):
            await stack.enter_async_context(plant.component(name))
        await wait_until(lambda: plant.executed.keys() >= OFFLINE)
        later = await edge(settings_file, "fleet", "results", "--wait", "2", sent["id"])
        assert {result["component"] for result in later["results"]} == set(names)
        assert set(plant.executed.values()) == {1}
    # The trails have been closed, so that all records are written.
    for name in names:
        async with open_store(plant.redis_of(name), None) as store:
            (record,) = await records_of(store)
            assert (record["kind"], record["user"], record["action"]) == ("fleet.call", "anna", "status")
            assert (record["status"] == "Good") == (name not in refused)


async def test_named_components_and_labels_are_addressed(
    mqtt: MqttSettings, redis: RedisSettings, unique: str, settings_file: Path, tmp_path: Path
) -> None:
    key_file = tmp_path / "anna.pem"
    create = ["fleet", "keys", "create", "anna", str(key_file), "--password-stdin"]
    await asyncio.to_thread(CliRunner().invoke, main, create, f"{PASSWORD}\n")
    plant = Plant(mqtt, redis, unique, read_public((tmp_path / "anna.jwk").read_bytes()))
    signed = ("--key", str(key_file), "--password-stdin", "--wait")
    async with plant.component("gw-20"), plant.component("gw-21"), plant.component("gw-22"):
        named = await edge(settings_file, "fleet", "send", "--to", "gw-20", "--to", "gw-99", *signed, "2", "status")
        assert [result["component"] for result in named["results"]] == ["gw-20"]
        assert named["missing"] == ["gw-99"]
        labelled = await edge(settings_file, "fleet", "send", "--label", "line=0", *signed, "2", "status")
        assert {result["component"] for result in labelled["results"]} == {"gw-20", "gw-22"}
        refused = await edge(settings_file, "fleet", "send", "--to", "gw-21", *signed, "30", "restart")
        assert [result["state"] for result in refused["results"]] == ["refused"]
    assert plant.executed == {"gw-20": 2, "gw-22": 1}


async def test_floods_of_forged_commands_and_results_change_nothing(
    mqtt: MqttSettings, redis: RedisSettings, unique: str
) -> None:
    _, key = new_key("anna")
    plant = Plant(mqtt, redis, unique, key)
    topics = FleetTopics(unique)
    async with plant.component("gw-20"), keep_session(mqtt, f"{unique}-attacker") as attacker:
        await attacker.wait_connected(30)
        for number in range(200):
            await attacker.publish(topics.command(f"forged{number}"), b"\xff" * number)
            await attacker.publish(topics.command(f"forged{number}"), b"a.b." + b"c" * 86)
        async with open_store(plant.redis_of("gw-20"), None) as store:
            assert await store.execute("KEYS", f"{store.keys.prefix}:execut*") == []
            assert [sealed_record async for sealed_record in audit.read_all(store)] == []
    assert plant.executed == {}
