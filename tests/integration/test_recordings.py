"""Recorded equipment messages are replayed to their kind: the station receives the recorded answers.

A file of `tests/recordings/` was written by `edge record`; the file next to it has what the station must receive.
"""

from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from edge.config import MqttSettings
from edge.features.admin.recording import ExchangeRecord, MessageRecord, RecordingHeader
from tests.conftest import WaitUntil
from tests.integration import replay_connected, replay_mqtt

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl"))
Each = TypeVar("Each", MessageRecord, ExchangeRecord)


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
async def test_replayed_recording_produces_the_recorded_answers_and_events(
    file: Path, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    beginning, again = begun(file), tmp_path / "again.jsonl"
    if beginning.settings["kind"] == "mqtt":
        lines = read(file, MessageRecord)
        station = await replay_mqtt.play(beginning, lines, mqtt, unique, again, wait_until)
        assert replay_mqtt.by_topic(read(again, MessageRecord)) == replay_mqtt.by_topic(lines)
    else:
        station = await replay_connected.play(beginning, read(file, ExchangeRecord), wait_until)
    got = {"answers": station.answers, "events": station.events, "refused": station.refused}
    assert msgspec.to_builtins(got) == msgspec.json.decode(file.with_suffix(".station.json").read_bytes())


def begun(file: Path) -> RecordingHeader:
    return msgspec.json.decode(file.read_bytes().splitlines()[0], type=RecordingHeader)


def read(file: Path, kind: type[Each]) -> list[Each]:
    return [msgspec.json.decode(line, type=kind) for line in file.read_bytes().splitlines()[1:]]
