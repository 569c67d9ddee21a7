"""The lists of jobs, as clients read them and receive notifications."""

import asyncio
from typing import Any

import pytest
from asyncua import Client, Node, ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData
from asyncua.ua.ua_binary import variant_to_binary

from edge.model.isa95 import JobOrderAndState, LocalizedText, WorkMaster
from edge.model.job_state import JobState
from edge.opcua.answer_encoding import array_of_bodies
from edge.uaserver.encoding import ENCODING_ID, encode_structure, extension_object
from edge.uaserver.live_list import BodyPacker, LiveList
from edge.uaserver.server import UaServer
from tests.uaserver.running import UA, Space, entry, response

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_lists_are_empty_arrays_of_structures_without_jobs(space: Space) -> None:
    for node in (await space.job_order_list(), await space.response_list()):
        value = await node.read_data_value()
        assert (value.Value.Value, value.Value.VariantType) == ([], ua.VariantType.ExtensionObject)


async def test_lists_show_a_job_with_its_state_and_response(jobs: UaServer, space: Space) -> None:
    jobs.show("station-1", entry("job-1", JobState.ENDED), response("job-1"))

    (shown,) = await (await space.job_order_list()).read_value()
    (answer,) = await (await space.response_list()).read_value()
    assert shown.JobOrder.JobOrderID == "job-1"
    assert shown.JobOrder.WorkMasterID[0].ID == "rear-axle"
    assert [(state.StateText.Text, state.StateNumber) for state in shown.State] == [("Ended", 5)]
    assert answer.JobOrderID == "job-1"
    assert [(parameter.ID, parameter.Value.Value) for parameter in answer.JobResponseData] == [("torque", 42.5)]
    top, sub = answer.JobState
    assert (top.StateText.Text, top.BrowsePath.Elements) == ("Ended", [])
    isa95 = space.index[UA + "ISA95-JOBCONTROL_V2/"]
    assert sub.BrowsePath.Elements[0].TargetName == ua.QualifiedName("EndedSubstates", isa95)


async def test_updated_job_keeps_its_place_in_the_lists(jobs: UaServer, space: Space) -> None:
    for job_order_id in ("job-1", "job-2", "job-3"):
        jobs.show("station-1", entry(job_order_id), None)
    jobs.show("station-1", entry("job-2", JobState.RUNNING), None)

    shown = await (await space.job_order_list()).read_value()
    assert [(item.JobOrder.JobOrderID, item.State[0].StateNumber) for item in shown] == [
        ("job-1", 2),
        ("job-2", 3),
        ("job-3", 2),
    ]


async def test_cleared_job_is_removed_with_its_response(jobs: UaServer, space: Space) -> None:
    jobs.show("station-1", entry("job-1", JobState.ENDED), response("job-1"))
    jobs.hide("station-1", "job-1")
    assert await (await space.job_order_list()).read_value() == []
    assert await (await space.response_list()).read_value() == []


async def test_lists_of_machines_are_separate(jobs: UaServer, space: Space) -> None:
    jobs.show("station-2", entry("job-1"), None)
    assert await (await space.job_order_list()).read_value() == []
    assert len(await (await space.job_order_list("station-2")).read_value()) == 1


async def test_work_master_list_contains_the_ids(jobs: UaServer, space: Space) -> None:
    recipe = WorkMaster(id="rear-axle", description=LocalizedText(text="Rear axle", locale="en"), data={"s": 1})
    jobs.work_masters("station-1", [recipe])
    (shown,) = await (await space.member("JobOrderControl", "WorkMaster")).read_value()
    assert (shown.ID, shown.Description) == ("rear-axle", ua.LocalizedText("Rear axle", "en"))


class Listener:
    """A subscription handler that collects the ids of the jobs in each received list."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[list[str]] = asyncio.Queue()

    def datachange_notification(self, _node: Node, value: Any, _data: object) -> None:
        self.received.put_nowait([item.JobOrder.JobOrderID for item in value])


async def test_lists_notify_a_subscriber_when_a_job_comes_and_goes(
    jobs: UaServer, client: Client, space: Space
) -> None:
    listener = Listener()
    subscription = await client.create_subscription(20, listener)
    await subscription.subscribe_data_change(await space.job_order_list())
    async with asyncio.timeout(60):
        assert await listener.received.get() == []
        jobs.show("station-1", entry("job-1"), None)
        jobs.show("station-1", entry("job-2"), None)
        assert await listener.received.get() == ["job-1", "job-2"]
        jobs.hide("station-1", "job-1")
        assert await listener.received.get() == ["job-2"]
    await subscription.delete()


async def test_array_of_entries_is_encoded_as_by_asyncua() -> None:
    entries = (entry("job-1"), entry("job-2", JobState.RUNNING))
    array = array_of_bodies(
        ENCODING_ID[JobOrderAndState], [encode_structure(job_order_and_state) for job_order_and_state in entries]
    )
    assert b"".join(array.encoded()) == variant_to_binary(
        ua.Variant([extension_object(job_order_and_state) for job_order_and_state in entries])
    )


async def test_states_of_many_jobs_are_in_memory_once() -> None:
    packer = BodyPacker()
    entries = [entry(f"job-{number}", state) for number in range(3) for state in (JobState.ENDED, JobState.RUNNING)]
    packed = [packer.pack(payload) for payload in (*entries, response("job-1"))]
    assert [packer.unpack(data) for data in packed] == [
        encode_structure(payload) for payload in (*entries, response("job-1"))
    ]
    assert not any(b"Ended" in data or b"Running" in data for data in packed)


async def test_lists_notify_the_others_when_one_subscriber_fails() -> None:
    aspace = AddressSpace()
    node = NodeData(ua.NodeId("list", 1))
    node.attributes[ua.AttributeIds.Value] = AttributeValue(ua.DataValue())
    aspace[node.nodeid] = node
    live = LiveList(aspace, node.nodeid, asyncio.Event(), JobOrderAndState)
    received: list[ua.DataValue] = []

    async def fails(_handle: int, _value: ua.DataValue) -> None:
        raise ValueError

    async def notes(_handle: int, value: ua.DataValue) -> None:
        received.append(value)

    for callback in (fails, notes):
        aspace.add_datachange_callback(node.nodeid, ua.AttributeIds.Value, callback)
    live.put("job-1", entry("job-1"))
    await live.publish()
    assert [len(value.Value.Value) for value in received] == [1]
