"""An OPC UA client of another vendor reads the history of a tag in order of time."""

import json
import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.servers import wait_for

pytestmark = pytest.mark.slow

CHUNKS, SAMPLES = 6, 50
HISTORY = """
[telemetry]
record = "all"
history_days = 3
history_interval = 1
history_directory = "{directory}"
"""


def test_late_samples_are_in_order_between_those_of_their_time(plant: Plant) -> None:
    """They are in later chunks of the files: the order was that of writing. The last ones are in no file yet."""
    settings, directory = plant.gateway.settings, plant.gateway.directory / "history"
    settings.write_text(settings.read_text() + HISTORY.format(directory=directory))
    plant.gateway.stop()
    plant.gateway.start()
    now = time.time_ns() // 1_000_000
    begin = now - 3_600_000
    late = random.Random(1).sample(range(begin, begin + 600_000), CHUNKS * SAMPLES)
    _append(plant, 1, [{"at": now, "tag": "oven.temp", "value": 1}])
    for number in range(CHUNKS):
        before = _size(plant)
        instants = late[number * SAMPLES :][:SAMPLES]
        _append(plant, number + 2, [{"at": at, "tag": "oven.temp", "value": 1, "late": True} for at in instants])
        if number < CHUNKS - 1:
            wait_for(lambda: _size(plant) > before, "the samples are in a file")  # noqa: B023 - called at once
    expected = sorted(late)
    wait_for(lambda: _read(plant, begin, now)["instants"] == expected, "all samples are read in order")
    assert _read(plant, now - 1, begin - 1) == {"status": "Good", "instants": expected[::-1]}


def _append(plant: Plant, number: int, lines: list[dict[str, Any]]) -> None:
    """Append a batch to the stream of samples, as another program may do."""
    batch = ["producer", "other", "number", str(number), "at", str(time.time_ns() // 1_000_000)]
    for place, line in enumerate(lines):
        batch += [str(place), json.dumps(line)]
    plant.store.cli("XADD", "microdcs-edge:telemetry", "*", *batch)


def _size(plant: Plant) -> int:
    return sum(file.stat().st_size for file in (plant.gateway.directory / "history").glob("*.gz"))


def _read(plant: Plant, start: int, end: int) -> Any:
    span = [datetime.fromtimestamp(at / 1000, UTC).isoformat() for at in (start, end)]
    with opcua_client(plant.opcua_port, "history", "ns=10;s=Tags/oven.temp", *span) as client:
        return read_line(client)
