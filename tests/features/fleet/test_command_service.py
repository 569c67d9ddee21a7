"""A signed command is executed once despite duplicate deliveries, and its result survives a restart."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from edge.features.fleet import keys as fleet_keys
from edge.features.fleet import store as fleet
from edge.features.fleet.allowed_commands import FleetPolicy
from edge.features.fleet.command_service import FleetService
from edge.features.fleet.receipt import FleetWatch, remove_expired
from edge.features.fleet.signature import FleetCommand, FleetResult, FleetState, PublicKey, sign
from edge.features.fleet.signing_keys import new_key
from edge.foundation.errors import Refused
from edge.model.audit import AuditRecord
from edge.store.client import Store
from tests.store.losing_store import LosingStore, Loss

PRIVATE, PUBLIC = new_key("anna")
LOST_PRIVATE, LOST = new_key("ben")
NOW_MS = 1_800_000_000_000
COMMAND = FleetCommand(jti="0123456789abcdef", aud=("*",), iat=NOW_MS // 1000, exp=NOW_MS // 1000 + 600, cmd="status")


class Component:
    """A component that executes what it is sent."""

    def __init__(self, store: Store, name: str = "gw-1") -> None:
        self.store = store
        self.executed: list[tuple[str, tuple[str, ...]]] = []
        self.records: list[AuditRecord] = []
        self.keys = {PUBLIC.kid: PUBLIC, LOST.kid: replace(LOST, revoked=True)}
        self.failure: Exception | None = None
        self.during: Callable[[], None] = lambda: None
        self.service = FleetService(
            store,
            FleetPolicy(name, {}, ("status", "restart")),
            self._load_keys,
            self._execute,
            lambda: NOW_MS,
            self.records.append,
            retry_s=0.01,
        )

    async def _load_keys(self) -> Mapping[str, PublicKey]:
        return self.keys

    async def _execute(self, command: FleetCommand, text: str, signer: str) -> str:
        assert text.count(".") == 2
        assert signer == "anna"
        self.executed.append((command.cmd, command.args))
        self.during()
        if self.failure:
            raise self.failure
        return "well"

    async def take(self, command: FleetCommand = COMMAND) -> FleetResult | None:
        answer = await self.service.handle(sign(command, PRIVATE, PUBLIC.kid), "test")
        return answer.result if answer else None


async def test_command_is_executed_once_and_answered_each_time(store: Store) -> None:
    component = Component(store)
    first = await component.take()
    assert first is not None
    assert (first.state, first.output) == (FleetState.SUCCESSFUL, "well")
    assert await component.take() == first
    assert await Component(store).take() == first, "after a restart, too"
    assert len(component.executed) == 1
    (record,) = component.records
    assert (record.kind, record.user, record.action, record.status) == ("fleet.call", "anna", "status", "Good")
    assert await fleet.load_results(store, COMMAND.jti) == {"gw-1": first}


async def test_command_delivered_twice_at_once_is_executed_once(store: Store) -> None:
    component = Component(store)
    await asyncio.gather(*(component.take() for _ in range(5)))
    assert len(component.executed) == 1


async def test_command_is_executed_by_each_component_of_a_store(store: Store) -> None:
    first, second = Component(store), Component(store, "gw-2")
    assert await first.take()
    assert await second.take()
    assert (len(first.executed), len(second.executed)) == (1, 1)


async def test_id_is_remembered_until_the_command_has_expired(store: Store) -> None:
    await Component(store).take()
    (key,) = [key async for key in _keys(store, "executed:gw-1:*")]
    left_ms = await store.execute("PTTL", key)
    assert 600_000 < left_ms <= 600_000 + 120_000


async def _keys(store: Store, pattern: str) -> AsyncIterator[str]:
    for key in await store.execute("KEYS", f"{store.keys.prefix}:{pattern}"):
        yield key


async def test_failed_command_is_reported_with_its_reason(store: Store) -> None:
    component = Component(store)
    component.failure = Refused("fleet", "the disk is full")
    fleet_result = await component.take()
    assert fleet_result is not None
    assert (fleet_result.state, fleet_result.reason) == (FleetState.FAILED, "the disk is full")
    assert component.records[0].status == "the disk is full"


async def test_refused_command_is_answered_recorded_and_not_executed(store: Store) -> None:
    component = Component(store)
    fleet_result = await component.take(replace(COMMAND, cmd="doctor"))
    assert fleet_result is not None
    assert (fleet_result.state, fleet_result.reason[:11]) == (FleetState.REFUSED, "not_allowed")
    assert component.executed == []
    assert [record.user for record in component.records] == ["anna"]


async def test_command_with_an_unknown_key_is_not_recorded(store: Store) -> None:
    component = Component(store)
    stranger, key = new_key("mallory")
    for text in ("", "nonsense", sign(COMMAND, stranger, key.kid), sign(COMMAND, stranger, PUBLIC.kid)):
        assert await component.service.handle(text, "test") is None
    assert component.records == []
    assert [key async for key in _keys(store, "*xecut*")] == []


@pytest.mark.parametrize("revoked_first", [True, False])
async def test_revoked_key_cannot_use_up_the_id_of_another_command(store: Store, revoked_first: bool) -> None:  # noqa: FBT001 - a parameter
    component = Component(store)
    by_lost_key = sign(COMMAND, LOST_PRIVATE, LOST.kid)
    if revoked_first:
        answer = await component.service.handle(by_lost_key, "test")
        assert answer is not None
        assert answer.result.state is FleetState.REFUSED
    fleet_result = await component.take()
    await component.service.handle(by_lost_key, "test")
    assert fleet_result is not None
    assert fleet_result.state is FleetState.SUCCESSFUL
    assert (await fleet.load_results(store, COMMAND.jti))["gw-1"].state is FleetState.SUCCESSFUL


async def test_restart_is_successful_once_the_new_process_runs(store: Store) -> None:
    fleet_result = await Component(store).take(replace(COMMAND, cmd="restart"))
    assert fleet_result is not None
    assert fleet_result.state is FleetState.EXECUTING
    successor = Component(store)
    (answer,) = await successor.service.recover()
    assert (answer.id, answer.result.state) == (COMMAND.jti, FleetState.SUCCESSFUL)
    assert await successor.service.recover() == []
    assert await successor.take(replace(COMMAND, cmd="restart")) == answer.result
    assert successor.executed == []


async def test_command_interrupted_by_a_kill_is_reported_as_interrupted(store: Store) -> None:
    begun = FleetResult(state=FleetState.EXECUTING, at=NOW_MS, component="gw-1", command="status")
    assert await fleet.begin(store, COMMAND.jti, f"{COMMAND.jti}.{PUBLIC.kid}", begun, 60_000)
    component = Component(store)
    (answer,) = await component.service.recover()
    assert answer.result.state is FleetState.INTERRUPTED
    assert await component.take() == answer.result, "it is not executed a second time"
    assert component.executed == []


@pytest.mark.parametrize("reason", ["", "there is no such version"])
async def test_upgrade_of_an_earlier_process_is_followed_to_its_end(store: Store, reason: str) -> None:
    begun = FleetResult(state=FleetState.EXECUTING, at=NOW_MS, component="gw-1", command="upgrade")
    assert await fleet.begin(store, COMMAND.jti, f"{COMMAND.jti}.{PUBLIC.kid}", begun, 60_000)
    component = Component(store)
    assert await component.service.recover() == [], "it continues"

    async def follow(id: str) -> str:
        assert id == COMMAND.jti
        if reason:
            raise Refused("upgrade", reason)
        return "upgraded"

    (answer,) = await component.service.follow_upgrades(follow)
    ended = (answer.result.state, answer.result.output, answer.result.reason)
    expected = (FleetState.FAILED, "", reason) if reason else (FleetState.SUCCESSFUL, "upgraded", "")
    assert ended == expected
    assert await fleet.load_executing(store, "gw-1") == {}


async def test_command_of_this_process_is_not_reported_as_interrupted(store: Store) -> None:
    component = Component(store)
    recovered: list[asyncio.Task[object]] = []
    component.during = lambda: recovered.append(asyncio.create_task(component.service.recover()))
    fleet_result = await component.take()
    assert fleet_result is not None
    assert fleet_result.state is FleetState.SUCCESSFUL
    assert await recovered[0] == []


async def test_command_in_the_shared_store_is_executed_once(store: Store) -> None:
    component = Component(store)
    watch = FleetWatch(store, component.service)
    await store.commit(fleet.put_command(store.keys, COMMAND.jti, sign(COMMAND, PRIVATE, PUBLIC.kid)))
    await store.commit(fleet.put_command(store.keys, "x", "nonsense"))
    await watch.look()
    await watch.look()
    assert component.executed == [("status", ())]
    await remove_expired(store, COMMAND.exp)
    assert list(await fleet.load_commands(store)) == [COMMAND.jti]
    await remove_expired(store, COMMAND.exp + 1)
    assert await fleet.load_commands(store) == {}


async def test_commit_script_is_shared_with_its_version(store: Store) -> None:
    from edge.store.client import _SCRIPT_NAME, share_script

    await share_script(store)
    await share_script(store)
    shared = await store.execute("HGETALL", store.keys.scripts())
    assert (
        shared[f"{_SCRIPT_NAME}:sha1"] == hashlib.sha1(shared[_SCRIPT_NAME].encode(), usedforsecurity=False).hexdigest()
    )


@pytest.mark.parametrize("exp", [10**16, 10**20, 10**400])
@pytest.mark.parametrize("private", [PRIVATE, LOST_PRIVATE])
async def test_out_of_range_expiry_does_not_end_a_component(store: Store, exp: int, private: Ed25519PrivateKey) -> None:
    kid = PUBLIC.kid if private is PRIVATE else LOST.kid
    text = sign(replace(COMMAND, exp=exp), private, kid)
    answer = await Component(store).service.handle(text, "test")
    assert answer is not None
    assert answer.result.state is FleetState.REFUSED


async def test_foreign_value_at_a_key_does_not_stop_a_component(store: Store) -> None:
    await store.execute("SET", fleet_keys.fleet_results(store.keys, COMMAND.jti), "no hash")
    component = Component(store)
    await store.commit(fleet.put_command(store.keys, "0", sign(COMMAND, PRIVATE, PUBLIC.kid)))
    later = replace(COMMAND, jti="f" * 16)
    await store.commit(fleet.put_command(store.keys, "1", sign(later, PRIVATE, PUBLIC.kid)))
    await FleetWatch(store, component.service).look()
    assert (await fleet.load_results(store, later.jti))["gw-1"].state is FleetState.SUCCESSFUL


async def test_revoked_key_does_not_replace_the_sent_result_of_another(store: Store) -> None:
    component = Component(store)
    first = await component.take()
    answer = await component.service.handle(sign(COMMAND, LOST_PRIVATE, LOST.kid), "test")
    assert answer is not None
    assert answer.result == first


async def test_flood_by_a_revoked_key_is_bounded_in_store_and_audit_trail(store: Store) -> None:
    component = Component(store)
    for number in range(200):
        await component.service.handle(sign(replace(COMMAND, jti=f"{number:032}"), LOST_PRIVATE, LOST.kid), "test")
    assert len(component.records) == 60
    assert len([key async for key in _keys(store, "commands:*")]) == 60
    assert (await component.take()) is not None, "valid commands are executed meanwhile"


async def test_flood_of_expired_commands_is_bounded_in_the_audit_trail(store: Store) -> None:
    component = Component(store)
    for number in range(100):
        await component.take(replace(COMMAND, jti=f"{number:032}", iat=COMMAND.iat - 600, exp=COMMAND.iat - 1))
    assert len(component.records) == 60


async def test_command_executed_with_a_fast_clock_is_remembered_after_correction(store: Store) -> None:
    ahead_ms = 590_000
    command = replace(COMMAND, iat=COMMAND.iat - ahead_ms // 1000, exp=COMMAND.exp - ahead_ms // 1000)
    await Component(store).take(command)
    (key,) = [key async for key in _keys(store, "executed:gw-1:*")]
    # By the true clock the command is new: its whole lifetime is still to come.
    assert await store.execute("PTTL", key) > 600_000


async def test_result_and_record_survive_an_outage_at_the_end(store: Store) -> None:
    losing = LosingStore(store, [])
    component = Component(losing)

    def lose_three() -> None:
        losing.losses = iter([Loss.REQUEST] * 3)

    component.during = lose_three
    fleet_result = await component.take()
    assert fleet_result is not None
    assert (fleet_result.state, next(losing.losses, None)) == (FleetState.SUCCESSFUL, None)
    assert (await fleet.load_results(store, COMMAND.jti))["gw-1"] == fleet_result
    assert [record.status for record in component.records] == ["Good"]
