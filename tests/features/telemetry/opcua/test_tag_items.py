"""Tags are data items of OPC 10000-8 by their definitions, as another stack (node-opcua) reads them."""

from pathlib import Path
from typing import Any

import pytest
from asyncua import ua

from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.features.telemetry.opcua.tag_items import item_of, value_of
from edge.model.user import Role
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.features.telemetry.opcua.history_client import START, HistoryClient
from tests.uaserver.other_stack import OtherStack, node, other_stack
from tests.uaserver.other_stack import value_of as value_of_node

pytestmark = pytest.mark.slow

DEFINITIONS = (
    TagDefinition(tag="oven", unit="CEL", type="number", low=0, high=300, description="Temperature of the oven"),
    TagDefinition(tag="torque", unit="NU", type="number", definition="register 40001 / 10"),
    TagDefinition(tag="level", type="number", low=0, high=1),
    TagDefinition(tag="count", type="number"),
    TagDefinition(tag="open", type="truth value"),
    TagDefinition(tag="state", type="text"),
)
VALUES = {"oven": 81, "torque": 4.5, "level": 0.5, "count": 7, "open": True, "state": "idle", "other": 1.5}
TYPES = {
    "oven": ("i=17570", "i=11", {"EngineeringUnits", "EURange"}),
    "torque": ("i=17497", "i=11", {"EngineeringUnits", "Definition"}),
    "level": ("i=2368", "i=11", {"EURange"}),
    "count": ("i=15318", "i=11", set()),
    "open": ("i=2373", "i=1", {"TrueState", "FalseState"}),
    "state": ("i=2365", "i=12", set()),
    "other": ("i=2365", "i=24", set()),
}
DATA_TYPE, DESCRIPTION, USER_ACCESS_LEVEL = 14, 5, 18


async def below(other: OtherStack, parent: str, reference: str) -> dict[str, tuple[str, str]]:
    """Return NodeId and type of what a node refers to, by name."""
    asked = {"nodeId": node(parent), "referenceTypeId": node(reference), "browseDirection": 0, "resultMask": 63}
    (result,) = (await other.send("Browse", nodesToBrowse=[asked]))["results"]
    return {
        found["browseName"]["name"]: (found["nodeId"], found["typeDefinition"]) for found in result["references"] or ()
    }


async def test_tags_are_data_items_by_their_definitions(store: Store, tmp_path: Path, wait_until: WaitUntil) -> None:
    samples = {tag: Sample(START, tag, value) for tag, value in VALUES.items()}
    append_samples(tmp_path, list(samples.values()), 1 << 30)
    await store.commit(tags.save_last(store.keys, {tag: encode_line(sample) for tag, sample in samples.items()}))
    definitions = TagDefinitions(DEFINITIONS)
    history = TagHistory(tmp_path, None, definitions)
    async with (
        alarm_server(store, history=history, definitions=definitions) as server,
        other_stack(server.endpoint) as other,
    ):
        await wait_until(lambda: server.alarms.tags.has("oven"))
        variables = await below(other, "ns=10;s=Tags", "i=47")
        for tag, (variable_type, data_type, names) in TYPES.items():
            node_id, kind = variables[tag]
            assert kind == f"ns=0;{variable_type}", tag
            properties = await below(other, node_id, "i=46")
            assert properties.keys() == names, tag
            (value,) = await other.read({"nodeId": node(node_id), "attributeId": DATA_TYPE})
            assert value["value"]["value"] == f"ns=0;{data_type}", tag
            assert await other.values(node_id) == [VALUES[tag]]
        oven = variables["oven"][0]
        found: dict[str, tuple[str, str]] = await below(other, oven, "i=46")
        unit, span = await other.values(found["EngineeringUnits"][0], found["EURange"][0])
        assert (unit["unitId"], unit["displayName"]["text"]) == (4408652, "°C")
        assert (span["low"], span["high"]) == (0, 300)
        (described,) = await other.read({"nodeId": node(oven), "attributeId": DESCRIPTION})
        assert described["value"]["value"]["text"] == "Temperature of the oven"
        (made,) = await other.values((await below(other, variables["torque"][0], "i=46"))["Definition"][0])
        assert made == "register 40001 / 10"
        # An integer of a number is Double, now and in the past.
        (current,) = await other.read({"nodeId": node(oven), "attributeId": 13})
        past = (await HistoryClient(other).raw(START, START + 1, node_id=oven))["historyData"]["dataValues"]
        assert [value["value"]["dataType"] for value in (current, *past)] == [11, 11]


@pytest.mark.parametrize("role", [Role.OBSERVER, Role.ENGINEER])
async def test_tag_with_a_role_is_read_by_that_role_only(
    store: Store, tmp_path: Path, wait_until: WaitUntil, role: Role
) -> None:
    """Each session read every value, now and in the past."""
    samples = {tag: Sample(START, tag, 7) for tag in ("dose", "open")}
    append_samples(tmp_path, list(samples.values()), 1 << 30)
    await store.commit(tags.save_last(store.keys, {tag: encode_line(sample) for tag, sample in samples.items()}))
    definitions = TagDefinitions((TagDefinition(tag="dose", type="number", role="engineer"),))
    history = TagHistory(tmp_path, None, definitions)
    async with (
        alarm_server(store, history=history, definitions=definitions, role=role) as server,
        other_stack(server.endpoint) as other,
    ):
        await wait_until(lambda: server.alarms.tags.has("dose"))
        subscription = await other.subscription()
        for tag in samples:
            is_allowed = tag == "open" or role is Role.ENGINEER
            expected = "Good" if is_allowed else "BadUserAccessDenied"
            node_id = f"ns=10;s=Tags/{tag}"
            value, level = await other.read(
                value_of_node(node_id), {"nodeId": node(node_id), "attributeId": USER_ACCESS_LEVEL}
            )
            past = await HistoryClient(other).raw(START, START + 1, node_id=node_id)
            (item,) = await other.monitor(subscription, value_of_node(node_id))
            assert [value["statusCode"], past["statusCode"], item["statusCode"]] == [expected] * 3, tag
            assert bool(level["value"]["value"]) is is_allowed


async def test_monitored_tag_reports_its_new_samples(store: Store, wait_until: WaitUntil) -> None:
    """The node of a tag is made for each request: the items of its value were lost with it."""

    async def save(value: float) -> None:
        sample = Sample(START + int(value), "oven", value)
        await store.commit(tags.save_last(store.keys, {"oven": encode_line(sample)}))

    await save(1.0)
    async with alarm_server(store) as server, other_stack(server.endpoint) as other:
        await wait_until(lambda: server.alarms.tags.has("oven"))
        subscription = await other.subscription()
        await other.monitor(subscription, value_of_node("ns=10;s=Tags/oven"))
        first = await other.changes(1)
        await save(2.0)
        second = await other.changes(1)
        assert [one["value"]["value"]["value"] for one in (*first, *second)] == [1.0, 2.0]


async def test_dead_band_in_percent_is_that_of_the_range(store: Store, wait_until: WaitUntil) -> None:
    """It was refused with Bad_MonitoredItemFilterUnsupported."""
    definitions = TagDefinitions(DEFINITIONS)

    async def save(oven: float) -> None:
        samples = {"oven": Sample(START + int(oven), "oven", oven), "torque": Sample(START, "torque", 4.5)}
        await store.commit(tags.save_last(store.keys, {tag: encode_line(sample) for tag, sample in samples.items()}))

    await save(100.0)
    async with alarm_server(store, definitions=definitions) as server, other_stack(server.endpoint) as other:
        await wait_until(lambda: server.alarms.tags.has("torque"))
        subscription = await other.subscription()

        def with_dead_band(tag: str, percent: float) -> dict[str, Any]:
            dead = {"$": "DataChangeFilter", "trigger": 1, "deadbandType": 2, "deadbandValue": percent}
            return value_of_node(f"ns=10;s=Tags/{tag}", parameters={"filter": dead})

        asked = [with_dead_band(*item) for item in (("oven", 10), ("oven", 101), ("oven", -1), ("torque", 10))]
        results = await other.monitor(subscription, *asked)
        assert [result["statusCode"] for result in results] == [
            "Good",
            "BadDeadbandFilterInvalid",
            "BadDeadbandFilterInvalid",
            "BadFilterNotAllowed",
        ]
        reported = [*await other.changes(1)]
        for value in (130.0, 131.0, 130.0):  # 10 % of 0 to 300 are 30
            await save(value)
            if value > 130.0:
                reported += await other.changes(1)
        await save(200.0)
        reported += await other.changes(1)
        assert [one["value"]["value"]["value"] for one in reported] == [100.0, 131.0, 200.0]


@pytest.mark.parametrize(
    ("definition", "value", "expected"),
    [
        (TagDefinition(tag="a", type="number"), 2**2000, (float("inf"), None)),
        (TagDefinition(tag="a", type="number"), "text", (None, ua.StatusCodes.BadTypeMismatch)),
        (TagDefinition(tag="a", type="number"), True, (None, ua.StatusCodes.BadTypeMismatch)),
        (TagDefinition(tag="a", type="truth value"), 1, (None, ua.StatusCodes.BadTypeMismatch)),
        (TagDefinition(tag="a", type="truth value"), 0.0, (None, ua.StatusCodes.BadTypeMismatch)),
        (TagDefinition(tag="a", type="truth value"), True, (True, None)),
        (TagDefinition(tag="a", type="text"), 1.5, (None, ua.StatusCodes.BadTypeMismatch)),
        (TagDefinition(tag="a", type="text"), None, (None, None)),
        (None, 1.5, (1.5, None)),
    ],
)
def test_value_of_another_type_is_a_mismatch(definition: TagDefinition | None, value: Any, expected: Any) -> None:
    """A sample of the time before the definition; the type of a variable is one for life."""
    variant, status = value_of(item_of(definition), value)
    assert (variant.Value, status and status.value) == expected
