"""No HistoryRead and no method of an alarm blocks the event loop longer than 50 ms."""

import asyncio
import gc
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from edge.features.telemetry.opcua.condition_view import encode_event_id
from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server, store_many
from tests.features.telemetry.opcua.history_client import SAMPLES, START
from tests.opcua.test_time_slices_under_attack import HOLD_S, LoopWatch

ROOT = Path(__file__).parents[4]
ALARMS = 5_000


async def attack(endpoint: str, *arguments: str) -> list[dict[str, Any]]:
    client = await asyncio.create_subprocess_exec(
        "nice",
        *(sys.executable, "-m", "tests.features.telemetry.opcua.history_attack", endpoint, *arguments),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await client.communicate()
    assert client.returncode == 0, out.decode()
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_history_and_alarm_methods_hold_the_loop_50_ms_at_most(
    store: Store, tmp_path: Path, wait_until: WaitUntil
) -> None:
    samples = [Sample(START + number * 1000, "wrench.temp", float(number)) for number in range(SAMPLES)]
    for first in range(0, SAMPLES, 10_000):
        append_samples(tmp_path, samples[first : first + 10_000], 1 << 30)
    await store.commit(tags.save_last(store.keys, {"wrench.temp": encode_line(samples[-1])}))
    last = (await store_many(store, ALARMS))[-1]
    async with alarm_server(store, history=TagHistory(tmp_path)) as server:
        alarm_nodes = server.alarms
        await wait_until(
            lambda: alarm_nodes.tags.has("wrench.temp") and alarm_nodes.conditions.view_of(last.id) is not None
        )
        gc.collect()
        gc.freeze()
        watch = LoopWatch(store)
        tasks = [asyncio.create_task(item) for item in (watch.tick(), watch.commit())]
        answers = await attack(server.endpoint, last.id, encode_event_id(last.id, 1_000, "1-0").hex())
        for task in tasks:
            task.cancel()
        gc.unfreeze()
    assert len(answers) == 20
    statuses = {entry["name"]: entry["status"] for entry in answers}
    assert set(statuses.values()) == {"Good"}, statuses
    held = sorted((value for value, _ in watch.held), reverse=True)
    slow = [
        (value, [answer["name"] for answer in answers if answer["from"] <= at <= answer["until"] + value])
        for value, at in watch.held
        if value > HOLD_S
    ]
    # Other programs slow the shared processor: a few passes may take longer, each by less than half.
    assert len(slow) <= len(held) // 1000, slow
    assert held[0] < 1.5 * HOLD_S, slow
    logging.getLogger(__name__).info(
        "%s %s", held[:3], {entry["name"]: (entry["bytes"], entry["until"] - entry["from"]) for entry in answers}
    )
