"""`edge jobs results --traces` copies traces whose hash is correct."""

import json
from pathlib import Path

from edge.features.traces.files import TraceFiles, TraceLimits
from edge.sfc.signal import Phase
from edge.station.answers import Answers
from edge.station.equipment import Command, EquipmentAnswer
from tests.cli.calling import Edge
from tests.conftest import WaitUntil
from tests.station.plant import DEDUPE_MS, FakeEquipment, Plant

ORDER = json.dumps({"JobOrderID": "J/1", "WorkMasterID": [{"ID": "linear"}]})
CURVE = {"channels": [{"name": "Torque", "unit": "N·m", "values": [0.0, 85.2]}]}


def measured(command: Command) -> EquipmentAnswer | None:
    if command.phase is not Phase.START:
        return None
    data = {"evaluation": "OK", "torque": {"value": 85.2, "unit": "N·m"}, "trace": CURVE}
    return EquipmentAnswer(command.command_id, data=data)


async def test_traces_are_copied_and_damaged_or_expired_traces_are_named(
    edge: Edge, plant: Plant, tool: FakeEquipment, settings_file: Path, tmp_path: Path, wait_until: WaitUntil
) -> None:
    directory, copies = tmp_path / "traces", tmp_path / "copies"
    with settings_file.open("a") as settings:
        settings.write(f'\n[traces]\ndirectory = "{directory}"\n')
    files = TraceFiles(directory, TraceLimits(1 << 20, 100, 3600))
    tool.replies = measured
    async with plant.at_work():
        tool.station = Answers(plant.store, plant.runs, DEDUPE_MS, result_files=files)
        assert (await edge("jobs", "store", "-", "--start", given=ORDER)).exit_code == 0
        await wait_until(lambda: len(list(directory.glob("*/*"))) == 1 and len(tool.received()) == 2)
        result = await edge("jobs", "results", "J/1", "--traces", copies)
    assert result.exit_code == 0
    assert "OK, torque 85.2 N·m, trace" in result.output
    (path,) = directory.glob("*/*")
    assert (copies / path.name).read_bytes() == path.read_bytes()
    path.write_bytes(b"damaged")
    damaged = await edge("jobs", "results", "J/1", "--traces", copies, "--json")
    assert damaged.exit_code == 1
    assert "does not match its hash" in json.loads(damaged.output)["copies"][0]["problem"]
    path.write_bytes(b"")
    path.rename(tmp_path / "gone")
    assert "not stored any more" in (await edge("jobs", "results", "J/1", "--traces", copies)).output
