"""Rules, samples and a processor over a real store, with a clock that a test holds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from edge.features.telemetry.alarm_decision import FLOOD_ALARMS
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.foundation.task_group import background_task
from edge.ports.batch import Batch, encode_batch
from edge.ports.sample_lines import Line
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange

BEGIN = 1_700_000_000_000
HOT = {
    "id": "hot",
    "kind": "limit",
    "tag": "wrench.temp",
    "limits": {"high": {"at": 80, "severity": 500}, "high_high": {"at": 95, "severity": 800}},
    "hysteresis": 5,
}


def rules_of(*items: dict[str, Any]) -> tuple[Rule, ...]:
    """Return rules, which must be sound."""
    rules, faults = parse_rules(list(items))
    assert faults == ()
    return rules


class TelemetryClock:
    """Shows the instant it was set to."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> int:
        return self.now


_numbers: dict[str, int] = {}


async def append(
    store: Store, *lines: Line, producer: str = "test", number: int | None = None, arrived_at: int | None = None
) -> None:
    """Append a batch that arrives at an instant, by default that of its last line."""
    key = f"{store.keys.prefix}/{producer}"
    _numbers[key] = number or _numbers.get(key, 0) + 1
    batch = Batch(producer, _numbers[key], arrived_at or (lines[-1].at if lines else BEGIN), lines)
    await store.commit(telemetry.append(store.keys, encode_batch(batch), 1000))


@contextlib.asynccontextmanager
async def at_work(
    store: Store,
    rules: Sequence[Rule],
    clock: Callable[[], int],
    volatile: Store | None = None,
    durable_interval_ms: int = 0,
    flood_limit: int = FLOOD_ALARMS,
) -> AsyncIterator[RuleProcessor]:
    """Run a processor for the length of the block; it commits each entry of the durable store by default."""
    processor = RuleProcessor(
        store,
        rules,
        clock,
        retry_s=0.05,
        volatile=volatile,
        durable_interval_ms=durable_interval_ms,
        flood_limit=flood_limit,
    )
    async with background_task(processor.run(), "telemetry"):
        yield processor


async def until_drained(store: Store, deadline: float = 60.0) -> None:
    """Wait until every entry of the stream is evaluated."""
    async with asyncio.timeout(deadline):
        while True:
            groups = await store.execute("XINFO GROUPS", store.keys.telemetry()) if await exists(store) else ()
            if groups and groups[0]["pending"] == 0 and groups[0]["lag"] == 0:
                return
            await asyncio.sleep(0.005)


async def exists(store: Store) -> bool:
    """Return whether the stream is there."""
    return bool(await store.execute("EXISTS", store.keys.telemetry()))


async def changes_of(store: Store) -> list[AlarmChange]:
    """Return every change of an alarm."""
    return await alarms.newest(store, 10_000)


async def kinds_of(store: Store) -> list[str]:
    """Return the kinds of all changes of alarms, in their order."""
    return [alarm_change.kind.value for alarm_change in await changes_of(store)]
