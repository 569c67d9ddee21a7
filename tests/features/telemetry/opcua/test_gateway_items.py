"""Clients see what the values of the gateway about itself mean: unit, states, description."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from asyncua import ua

from edge.features.telemetry.opcua.gateway_items import tag_item
from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.features.telemetry.opcua.tag_items import value_of
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.features.telemetry.opcua.history_client import START, HistoryClient
from tests.features.telemetry.opcua.test_tag_items import DESCRIPTION, below
from tests.uaserver.other_stack import OtherStack, node, other_stack

pytestmark = pytest.mark.slow

ANALOG_UNIT, ANALOG_UNIT_RANGE, TWO_STATE = "ns=0;i=17497", "ns=0;i=17570", "ns=0;i=2373"
SAMPLES = {
    "gateway.memory_mib": 81,
    "gateway.disk_fullness": 0.5,
    "gateway.clock_synchronised": 1,
    "equipment.wrench.connected": 0,
}


async def properties(other: OtherStack, node_id: str) -> dict[str, Any]:
    found = await below(other, node_id, "i=46")
    values = await other.values(*(property_id for property_id, _ in found.values())) if found else []
    return dict(zip(found, values, strict=True))


async def test_tags_of_the_gateway_have_unit_states_and_description(
    store: Store, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """All were DataItemType without a unit, described as the last sample of a tag."""
    samples = {tag: Sample(START, tag, value) for tag, value in SAMPLES.items()}
    append_samples(tmp_path, list(samples.values()), 1 << 30)
    await store.commit(tags.save_last(store.keys, {tag: encode_line(sample) for tag, sample in samples.items()}))
    async with (
        alarm_server(store, history=TagHistory(tmp_path)) as server,
        other_stack(server.endpoint) as other,
    ):
        await wait_until(lambda: server.alarms.tags.has("gateway.memory_mib"))
        variables = await below(other, "ns=10;s=Tags", "i=47")
        memory, disk, clock, wrench = [variables[tag] for tag in SAMPLES]
        assert [kind for _, kind in (memory, disk, clock, wrench)] == [
            ANALOG_UNIT,
            ANALOG_UNIT_RANGE,
            TWO_STATE,
            TWO_STATE,
        ]
        unit = (await properties(other, memory[0]))["EngineeringUnits"]
        assert (unit["unitId"], unit["displayName"]["text"]) == (int.from_bytes(b"E63"), "MiB")
        span = (await properties(other, disk[0]))["EURange"]
        assert (span["low"], span["high"]) == (0, 1)
        states = await properties(other, wrench[0])
        assert (states["TrueState"]["text"], states["FalseState"]["text"]) == ("connected", "offline")
        assert await other.values(memory[0], disk[0], clock[0], wrench[0]) == [81, 0.5, True, False]
        (described,) = await other.read({"nodeId": node(memory[0]), "attributeId": DESCRIPTION})
        assert described["value"]["value"]["text"] == "Largest memory of the process since its start."
        past = await HistoryClient(other).raw(START, START + 1, node_id=clock[0])
        assert [value["value"]["value"] for value in past["historyData"]["dataValues"]] == [True]


def documented() -> Sequence[str]:
    """Return the tags of the gateway in the reference."""
    text = (Path(__file__).parents[4] / "docs/reference/telemetry.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| gateway | `equipment.{name}.connected`")]
    names = [name for name in row.split("`")[1::2] if name.startswith(("gateway.", "equipment."))]
    return [name.replace("{name}", "wrench") for name in names]


@pytest.mark.parametrize("tag", documented())
def test_every_documented_tag_of_the_gateway_is_known(tag: str) -> None:
    assert tag_item(TagDefinitions(), tag).description != tag_item(TagDefinitions(), "other").description


def test_definition_of_a_site_wins() -> None:
    definitions = TagDefinitions([TagDefinition("gateway.memory_mib", unit="AD", description="Memory")])
    assert tag_item(definitions, "gateway.memory_mib").description == "Memory"


def test_tag_of_another_gateway_of_the_store_is_known() -> None:
    own, other = (tag_item(TagDefinitions(), f"gateway.memory_mib{suffix}") for suffix in ("", "[press-2]"))
    assert own == other


@pytest.mark.parametrize(
    ("tag", "value", "expected"),
    [
        ("gateway.clock_synchronised", 1, (True, None)),
        ("gateway.clock_synchronised", 0.0, (False, None)),
        ("gateway.clock_synchronised", 2, (None, ua.StatusCodes.BadTypeMismatch)),
        ("gateway.memory_mib", 1, (1.0, None)),
    ],
)
def test_flag_of_the_gateway_is_boolean(tag: str, value: float, expected: Any) -> None:
    variant, status = value_of(tag_item(TagDefinitions(), tag), value)
    assert (variant.Value, status and status.value) == expected
