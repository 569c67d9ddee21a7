"""A gateway behind Sentinel opens its inside again when the primary changes, in the same process."""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from edge.app.lifecycle import _Life, serve
from edge.config import MqttSettings, Settings
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.store.sentinel_line import Line, open_line


def settings_of(line: Line, unique: str) -> Settings:
    return Settings(redis=line.settings(unique), mqtt=MqttSettings(url=""), opcua=NO_OPCUA)


@pytest.mark.parametrize("fault", ["command", "kill"])
async def test_gateway_serves_again_after_a_failover(
    tmp_path: Path, unique: str, wait_until: WaitUntil, fault: str
) -> None:
    async with open_line(tmp_path) as line:
        with capture_logs() as logs:
            life = asyncio.create_task(serve(settings_of(line, unique)))

            def ready() -> int:
                assert not life.done()
                return sum(entry["event"] == "ready" for entry in logs)

            await wait_until(lambda: ready() == 1)
            if fault == "kill":
                await line.nodes[0].kill()
            else:
                await line.fail_over()
            await wait_until(lambda: ready() == 2)
            assert await line.nodes[1].call("GET", f"{unique}:lease:instance:edge")
            os.kill(os.getpid(), signal.SIGTERM)
            await life
    events = [entry["event"] for entry in logs]
    assert events.count("primary changed, store closed") == 1
    assert events[-1] == "stopped"


async def test_store_that_is_over_before_the_gateway_serves_is_opened_again(
    tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """A failover while the gateway was being opened: the next failure was taken for settings that cannot be used."""
    ready = 0
    async with open_line(tmp_path, nodes=1) as line:

        def end_the_first_store(message: str) -> None:
            nonlocal ready
            ready += message.startswith("READY=1")
            if ready == 1 and message.startswith("READY=1"):
                gc.unfreeze()
                (store,) = (value for value in gc.get_objects() if isinstance(value, Store) and is_open(value, unique))
                store.end("a failover while the gateway was opened")
                for sentinel in line.sentinels:
                    sentinel.signal(signal.SIGSTOP)

        life = _Life(end_the_first_store, None)
        with capture_logs() as logs:
            running = asyncio.create_task(life.run(settings_of(line, unique)))
            await wait_until(lambda: running.done() or is_logged(logs, "store not opened again, retrying"))
            for sentinel in line.sentinels:
                sentinel.signal(signal.SIGCONT)
            await wait_until(lambda: running.done() or ready == 2)
            life.stopping.set()
            life.woken.set()
            await running
    assert not is_logged(logs, "settings not applied")


def is_open(store: Store, prefix: str) -> bool:
    return store.keys.prefix == prefix and not store.over.is_set()


def is_logged(logs: Sequence[Mapping[str, Any]], event: str) -> bool:
    return any(entry["event"] == event for entry in logs)


async def test_gateway_without_a_primary_stops_on_a_signal(tmp_path: Path, unique: str, wait_until: WaitUntil) -> None:
    """The store is over, and no sentinel names another primary: the gateway retries until the signal."""
    async with open_line(tmp_path, nodes=1) as line:

        def freeze_at_the_end(_logger: object, _name: str, entry: EventDict) -> EventDict:
            """Freeze the sentinels neither before the store is over nor after it is opened again."""
            if entry["event"] == "primary changed, store closed":
                for sentinel in line.sentinels:
                    sentinel.signal(signal.SIGSTOP)
            return entry

        with capture_logs(processors=[freeze_at_the_end]) as logs:
            life = asyncio.create_task(serve(settings_of(line, unique)))
            await wait_until(lambda: life.done() or is_logged(logs, "ready"))
            await line.nodes[0].call("HSET", f"{unique}:generation", "id", "other")
            await wait_until(lambda: life.done() or is_logged(logs, "store not opened again, retrying"))
            assert not life.done()
            os.kill(os.getpid(), signal.SIGTERM)
            # It ends with an error when it does not stop in time.
            await life


async def test_reopened_gateway_keeps_nothing_of_the_former_ones(
    tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """Garbage that a gateway leaves would be excluded from collection by the next one."""
    frozen: list[int] = []
    async with open_line(tmp_path, nodes=1) as line:
        with capture_logs() as logs:
            life = asyncio.create_task(serve(settings_of(line, unique)))
            for number in range(5):
                await wait_until(lambda: sum(entry["event"] == "ready" for entry in logs) == number + 1)  # noqa: B023
                frozen.append(gc.get_freeze_count())
                await line.nodes[0].call("HSET", f"{unique}:generation", "id", f"other {number}")
            os.kill(os.getpid(), signal.SIGTERM)
            await life
    assert frozen[4] - frozen[2] < 0.01 * frozen[4]
