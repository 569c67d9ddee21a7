"""A client from another vendor (npm node-nutrunner-open-library) works with the simulated controller.

Version 1.2.7 writes a header of 24 characters, so the data of its messages are shifted, and it cannot read a frame of
20 characters, such as a heartbeat: it proves messages without data, and everything that it receives.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.simulated.controller import open_openprotocol_controller
from tests.conftest import WaitUntil

ROOT = Path(__file__).parents[4]
INSTALLED = ROOT / ".node" / "node_modules"
PROGRAM = Path(__file__).parent / "node" / "nutrunner.js"
DEADLINE_S = 60


async def test_client_of_another_vendor_runs_a_tightening(wait_until: WaitUntil) -> None:
    assert (INSTALLED / "node-nutrunner-open-library").is_dir(), "run make setup: it installs the peers"
    async with open_openprotocol_controller("station 7", delay=0.05) as controller:
        controller.select_parameter_set(3)
        controller.set_identifier("WDB1HXQZKRAMPLE")
        process = await asyncio.create_subprocess_exec(
            *("node", PROGRAM, str(controller.server.port)),
            env=os.environ | {"NODE_PATH": str(INSTALLED)},
            stdout=asyncio.subprocess.PIPE,
        )
        subscriptions = Mid.RESULT_SUBSCRIBE, Mid.ALARM_SUBSCRIBE
        try:
            async with asyncio.timeout(DEADLINE_S):
                await wait_until(
                    lambda: {mid_frame.mid for mid_frame in controller.server.received} >= set(subscriptions),
                    DEADLINE_S,
                )
                controller.break_down("E404")
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
    events: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    found = {event["what"]: event for event in events}
    assert [event["what"] for event in events][-1] == "end", events
    assert not {"frameError", "parseError", "failed", "error"} & found.keys()
    assert [event["mid"] for event in events if event["what"] == "accepted"] == [78, 73, 63, 100, 103]
    assert not controller.alarm
    expected = {
        "controllerName": "station 7",
        "vin": "WDB1HXQZKRAMPLE",
        "paramSetId": 3,
        "ok": True,
        "torque": 85.2,
        "torqueMin": 76.5,
        "angle": 42,
        "tighteningId": "0000000001",
    }
    assert {name: found["result"][name] for name in expected} == expected
    assert (controller.begun, controller.finished, controller.acknowledged) == (["WDB1HXQZKRAMPLE"],) * 2 + ([1],)
