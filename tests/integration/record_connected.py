"""Record the simulated controllers and cameras again, for tests/recordings.

Run `python -m tests.integration.record_connected` when the questions of a kind change, and review the difference.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.features.admin.recording import ExchangeRecord, RecordingHeader
from edge.features.joining.equipment import open_ijt
from edge.features.joining.settings import IjtSettings
from edge.features.joining.simulated.controller import IjtFault
from edge.features.joining.simulated.controller import open_ijt as open_controller
from edge.features.vision.equipment import open_vision
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import VisionFault
from edge.features.vision.simulated.camera import open_vision as open_camera
from edge.model.equipment_traffic import TrafficKind, TrafficRecord
from edge.station.equipment import EquipmentAnswer, OutcomeUnknown
from edge.store import traffic_channel
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation

DIRECTORY = Path(__file__).parents[1] / "recordings"
LONGER_THAN_A_CUT = 1.5
PATIENCE = 60.0


@dataclass
class Scene(RecordingStation):
    """A gateway with one piece of equipment: what passes between them is written down as `edge record` does."""

    name: str
    settings: Any
    open_kind: Callable[..., AbstractAsyncContextManager[ConnectedEquipment]]
    began: float = field(default_factory=time.monotonic)
    lines: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        RecordingStation.__init__(self)

    def report_traffic(self, what: TrafficKind, data: Any) -> None:
        encoded = traffic_channel.encode_record(TrafficRecord(at=0, gateway="edge", what=what, data=data))
        passed = msgspec.json.decode(encoded, type=TrafficRecord)
        after = round(time.monotonic() - self.began, 3)
        line = ExchangeRecord(after=after, gateway="edge", what=what, data=passed.data)
        self.lines.append(msgspec.json.encode(line).replace(self.settings.url.encode(), b"opc.tcp://***"))

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        await super().answer(answer)
        self.stopped_meanwhile.add(answer.command_id)
        self.unanswered = [command for command in self.unanswered if command.command_id != answer.command_id]

    async def play(self, *acts: Callable[["Scene", ConnectedEquipment], Awaitable[None]]) -> None:
        """Play each act on a gateway that was started for it."""
        for number, act in enumerate(acts):
            self.report_traffic(TrafficKind.BEGUN, {"process": f"process-{number}", "state": None})
            async with self.open_kind(self.name, self.settings, self, SCOPES) as equipment:
                await until(partial(getattr, equipment, "connected"))
                await act(self, equipment)

    def write(self, file: str) -> None:
        shown = msgspec.to_builtins(self.settings) | {"url": "opc.tcp://***"}
        begun_at = datetime.now(UTC).isoformat(timespec="seconds")
        header = RecordingHeader(equipment=self.name, settings=shown, version="0.1.0", begun_at=begun_at)
        (DIRECTORY / f"{file}.jsonl").write_bytes(b"\n".join([msgspec.json.encode(header), *self.lines, b""]))
        got = {
            "answers": self.answers,
            "events": self.events,
            "refused": [replace(refused, reason=str(refused.reason)) for refused in self.refused],
        }
        text = msgspec.json.format(msgspec.json.encode(got), indent=2)
        (DIRECTORY / f"{file}.station.json").write_bytes(text + b"\n")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - simulators have no event for it
            await asyncio.sleep(0.01)


TIGHTEN = replace(WORK, parameters={"joining_process_id": "rear axle 85Nm", "vin": "WDB1"})
INSPECT = replace(WORK, parameters={"recipe_id": "rear axle", "part_id": "SN-7"})


async def send(scene: Scene, equipment: ConnectedEquipment) -> None:
    command = INSPECT if scene.settings.kind == "vision" else TIGHTEN
    scene.unanswered = [command]
    await equipment.send(command)


async def answered(scene: Scene, equipment: ConnectedEquipment) -> None:
    if not scene.unanswered:
        await send(scene, equipment)
    await until(lambda: scene.answers)
    await asyncio.sleep(0.2)


async def stopped(scene: Scene, equipment: ConnectedEquipment) -> None:
    await send(scene, equipment)
    await asyncio.sleep(0.3)
    (command,) = scene.unanswered
    scene.unanswered, scene.stopped_meanwhile = [], {command.command_id}
    await equipment.stop(command)
    await asyncio.sleep(0.3)


async def killed(scene: Scene, equipment: ConnectedEquipment) -> None:
    await send(scene, equipment)
    await asyncio.sleep(0.3)


async def record_controllers() -> None:
    acts = {
        "ijt-job": (IjtFault.NONE, 0.2, [answered]),
        "ijt-not-ok": (IjtFault.NOK, 0.2, [answered]),
        "ijt-cut-off-at-work": (IjtFault.DISCONNECT, 0.2, [answered]),
        "ijt-cut-at-its-start": (IjtFault.CUT, 0.2, [answered]),
        "ijt-stopped-at-work": (IjtFault.NONE, PATIENCE, [stopped]),
        "ijt-gateway-killed-at-work": (IjtFault.NONE, LONGER_THAN_A_CUT, [killed, answered]),
    }
    for file, (fault, delay, played) in acts.items():
        async with open_controller(delay=delay) as controller:
            controller.fault = fault
            url = controller.device.url
            settings = IjtSettings(kind="ijt", type_ids=(TYPE_ID,), url=url, security="none")
            scene = Scene("wrench", settings, open_ijt)
            await scene.play(*played)
            scene.write(file)


async def record_cameras() -> None:
    faults = {
        "vision-job": VisionFault.NONE,
        "vision-error-at-work": VisionFault.ERROR_STATE,
        "vision-cut-off-at-work": VisionFault.DISCONNECT,
    }
    for file, fault in faults.items():
        async with open_camera() as camera:
            camera.fault = fault
            url = camera.device.url
            settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=url, security="none")
            scene = Scene("camera", settings, open_vision)
            await scene.play(answered)
            scene.write(file)


async def record() -> None:
    await record_controllers()
    await record_cameras()


if __name__ == "__main__":
    asyncio.run(record())
