"""The page "Your first order": its payloads match the schemas, its programs run under the access rules of a broker."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.outside.mqtt_device import DeviceFault, MqttDevice
from tests.outside.servers import EDGE, ROOT
from tests.outside.test_hardened_broker import PASSWORD, station
from tests.outside.test_mosquitto_examples import Station

__all__ = ["station"]

EXAMPLES = ROOT / "docs" / "examples" / "mes"
PAGE = ROOT / "docs" / "how-to" / "first-order.md"
SCHEMAS = {
    "workmaster": "config.workmaster",
    "order": "StoreAndStart.call",
    "answer": "Method.answer",
    "event": "ISA95JobOrderStatusEventType",
    "response": "RequestJobResponseByJobOrderID.answer",
}
PROGRAMS = {
    "first_order.py": EDGE.with_name("python"),
    "first_order.mjs": Path("node"),
}

pytestmark = pytest.mark.slow


def payload(name: str) -> Any:
    """Return a payload that the page shows."""
    (found,) = re.findall(rf"^```json {name}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return json.loads(found)


@pytest.mark.parametrize("name", SCHEMAS)
def test_payload_of_the_page_matches_its_schema(name: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{SCHEMAS[name]}.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(payload(name), schema)


def test_recipe_of_the_page_is_the_one_of_the_programs() -> None:
    assert payload("workmaster")["data"] == json.loads((EXAMPLES / "recipe.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_of_the_page_orders_a_job_and_prints_its_torque(station: Station, name: str, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for text in (name, "recipe.json"):
        (copied / text).write_bytes((EXAMPLES / text).read_bytes())
    (copied / "node_modules").symlink_to(ROOT / ".node" / "node_modules")
    port = station.environment["PORT"]
    device = MqttDevice(
        int(port), "app/equipment/wrench", DeviceFault.NONE, lock=False, work_s=0.1, login=("wrench", PASSWORD)
    )
    device.open()
    try:
        made = subprocess.run(
            [PROGRAMS[name], copied / name, "127.0.0.1", port, "mes", PASSWORD],
            check=False,
            capture_output=True,
            text=True,
            timeout=90,
            env={"PATH": os.environ["PATH"]},
        )
    finally:
        device.close()
    assert made.returncode == 0, made.stdout + made.stderr
    assert '"torque"' in made.stdout
    assert len(device.ended) == 1
    assert json.loads(station.gateway.cli("jobs", "list", "--json")) == []
