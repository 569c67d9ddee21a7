"""A process is identified by a token; it is reported dead only if that is certain."""

import asyncio
import sys
import time

import pytest

from edge.access.instances import (
    GatewayReport,
    end_token,
    is_surely_dead,
    load_reports,
    process_token,
    working_instances,
)
from edge.foundation.task_group import background_task
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LIFETIME_S

_SHOWN = "from edge.access.instances import process_token; print(process_token())"


async def test_ended_process_on_this_host_is_dead() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _SHOWN, stdout=asyncio.subprocess.PIPE)
    reported, _ = await process.communicate()
    assert is_surely_dead(reported.decode().strip())


def test_live_process_of_another_user_is_not_dead() -> None:
    assert not is_surely_dead(process_token())
    place, _, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"{place} 1 {unique}")


def test_state_of_a_process_on_another_host_is_unknown() -> None:
    _, pid, unique = process_token().rsplit(" ", 2)
    assert not is_surely_dead(f"another-boot pid:[1] 999999999 {unique}")
    assert not is_surely_dead(f" {pid} {unique}")


def test_ended_holder_of_this_process_is_dead() -> None:
    """The process continues: it opens the gateway again."""
    ended, other = process_token(), process_token()
    end_token(ended)
    assert is_surely_dead(ended)
    assert not is_surely_dead(other)


def test_process_tokens_are_unique() -> None:
    assert process_token() != process_token()


@pytest.mark.parametrize("token", ["", "4f1c09d2", "one two", "{place} x y", f"{{place}} {'9' * 30} y"])
def test_state_of_a_process_with_a_foreign_token_is_unknown(token: str) -> None:
    """A sidecar claims its name with any random value: a worker of this name must stop with the reason."""
    place, _, _ = process_token().rsplit(" ", 2)
    assert not is_surely_dead(token.format(place=place))


ELSEWHERE = "elsewhere pid:[1] 1 x"


async def renew(store: Store) -> None:
    """Renew the lease of `live`, which another host holds."""
    value: str | None = ""
    while value is not None:
        await asyncio.sleep(0.3)
        value = await instance_leases.renew(store, "live", ELSEWHERE, value)


async def test_gateway_of_this_host_is_found_at_once(store: Store) -> None:
    await instance_leases.acquire(store, "edge", process_token())
    began = time.monotonic()
    assert await working_instances(store, ["edge", "released"]) == {"edge"}
    assert time.monotonic() - began < LIFETIME_S / 2


async def test_killed_gateway_does_not_work_though_its_lease_remains(store: Store) -> None:
    for name in ("live", "killed"):
        await instance_leases.acquire(store, name, ELSEWHERE)
    async with background_task(renew(store), "renewal"), asyncio.timeout(60):
        assert await working_instances(store, ["live", "killed"]) == {"live"}


async def test_gateway_with_an_expiring_lease_works_until_it_expires(store: Store) -> None:
    await store.execute("SET", store.keys.lease_instance("older"), ELSEWHERE, "PX", 60_000)
    assert await working_instances(store, ["older"]) == {"older"}


async def test_report_names_whether_its_gateway_works(store: Store) -> None:
    for name in ("edge", "away"):
        await instance_leases.register(store, ("station-1",), name)
    await instance_leases.acquire(store, "edge", process_token())
    assert await load_reports(store, ("station-1",)) == {
        "away": GatewayReport(None, at_work=False),
        "edge": GatewayReport(None, at_work=True),
    }
