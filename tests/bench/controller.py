"""The controller of the MQTT scenario, a process of its own: it answers at once, and measures the wait for a command.

`python -m tests.bench.controller URL TOPIC` prints `ready`, then answers until its input ends; its last line is the
summary of the waits in milliseconds: from the answer of a job to its next command, as the equipment sees a step.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Final

import uvloop

from edge.config import MqttSettings
from edge.foundation.task_group import background_task
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_broker import broker_of
from edge.links.mqtt_connection import Connection, connect
from tests.bench.measure import spread

READY: Final = "ready"
WARM: Final = "warm"
"""The beginning of the ids of jobs that are not measured."""


async def _answer_all(connection: Connection, topic: str, waits: list[float]) -> None:
    """Answer every command with as little work as possible: a busy controller would be what is measured."""
    answered: dict[str, float] = {}
    async with asyncio.TaskGroup() as publishing:
        async for received in connection.messages():
            command = received.message.user_properties
            job_id = command["id"].partition("/")[0]
            if job_id in answered and not job_id.startswith(WARM):
                waits.append(time.perf_counter() - answered[job_id])
            answer = Message(f"{topic}/answers", b'{"done":true}', "application/json", _attributes(command))
            answered[job_id] = time.perf_counter()
            publishing.create_task(connection.publish(answer, 1))
            connection.acknowledge(received.packet_id)


def _attributes(command: Mapping[str, str]) -> dict[str, str]:
    return {
        "specversion": "1.0",
        "id": f"{command['id']}/answer",
        "source": "/bench/controller",
        "type": command["type"],
        "subject": command["subject"],
        "correlationid": command["correlationid"],
        "causationid": command["id"],
    }


async def main(url: str, topic: str) -> None:
    """Answer until the input ends, then print the summary."""
    waits: list[float] = []
    async with connect(broker_of(MqttSettings(url=url), "bench-controller", 0)) as connection:
        await connection.subscribe(f"{topic}/commands")
        await connection.publish(Message(f"{topic}/presence", b"online", retain=True), 1)
        async with background_task(_answer_all(connection, topic, waits), "answers"):
            sys.stdout.write(f"{READY}\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
    sys.stdout.write(json.dumps(spread(waits)) + "\n")


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
