"""The address space, read by a client that knows the specifications."""

import pytest
from asyncua import Client, Node, ua

import edge
from edge.uaserver.namespaces import (
    TYPES_PUBLISHED,
    TYPES_URI,
    TYPES_VERSION,
    application_uri,
    charts_uri,
    machines_uri,
)
from tests.uaserver.running import UA, Space

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def reference_to(node: Node, child: Node) -> int:
    """Return the type of the reference to a child, but for that of its events."""
    notifier = ua.NodeId(ua.ObjectIds.HasNotifier)
    references = [ref for ref in await node.get_references() if ref.IsForward and ref.ReferenceTypeId != notifier]
    (found,) = [ref for ref in references if ref.NodeId == child.nodeid]
    return int(found.ReferenceTypeId.Identifier)


async def arguments(method: Node) -> list[list[tuple[str, int, int]]]:
    """Return name, data type and rank of the input arguments, then of the output arguments."""
    both = [await (await method.get_child(name)).read_value() for name in ("0:InputArguments", "0:OutputArguments")]
    return [[(found.Name, found.DataType.Identifier, found.ValueRank) for found in side] for side in both]


class TestPlace:
    async def test_objects_folder_references_lead_to_the_jobs(self, client: Client, space: Space) -> None:
        machines = await client.nodes.objects.get_child([space.name("Machines", UA + "Machinery/")])
        machine = await space.machine()
        blocks = await machine.get_child([space.name("MachineryBuildingBlocks", UA + "Machinery/")])
        management = await space.job_management()
        control = await management.get_child([space.name("JobOrderControl", UA + "Machinery/Jobs/")])
        results = await management.get_child([space.name("JobOrderResults", UA + "Machinery/Jobs/")])
        identification = await machine.get_child([space.name("Identification", UA + "DI/")])

        assert await reference_to(client.nodes.objects, machines) == ua.ObjectIds.Organizes
        assert await reference_to(machines, machine) == ua.ObjectIds.Organizes
        assert await reference_to(machine, identification) == ua.ObjectIds.HasAddIn
        assert await reference_to(machine, blocks) == ua.ObjectIds.HasComponent
        assert await reference_to(blocks, identification) == ua.ObjectIds.HasAddIn
        assert await reference_to(blocks, management) == ua.ObjectIds.HasAddIn
        assert await reference_to(management, control) == ua.ObjectIds.HasComponent
        assert await reference_to(management, results) == ua.ObjectIds.HasComponent

    async def test_nodes_have_the_official_types(self, client: Client, space: Space) -> None:
        management = await space.job_management()
        kinds = {(await node.read_browse_name()).Name: node for node in await management.get_children()}
        isa95 = space.index[UA + "ISA95-JOBCONTROL_V2/"]

        assert await management.read_type_definition() == ua.NodeId(1003, space.index[UA + "Machinery/Jobs/"])
        assert await kinds["JobOrderControl"].read_type_definition() == ua.NodeId(1008, isa95)
        assert await kinds["JobOrderResults"].read_type_definition() == ua.NodeId(1003, isa95)

    async def test_machine_identification_comes_from_the_settings(self, space: Space) -> None:
        for scope in ("station-1", "station-2"):
            identification = await (await space.machine(scope)).get_child([space.name("Identification", UA + "DI/")])
            plate = {
                (await node.read_browse_name()).Name: await node.read_value()
                for node in await identification.get_children()
            }
            assert plate == {
                "Manufacturer": ua.LocalizedText("Tightening Works"),
                "SerialNumber": "4711",
                "ProductInstanceUri": f"https://example.com/4711/{scope}",
            }

    async def test_node_ids_are_derived_from_the_scope(self, space: Space) -> None:
        index = space.index[machines_uri("edge")]
        path = "station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl/JobOrderList"
        assert (await space.job_order_list()).nodeid == ua.NodeId(path, index)

    async def test_namespaces_keep_their_indexes(self, client: Client) -> None:
        assert await client.get_namespace_array() == [
            UA,
            application_uri("edge"),
            UA + "DI/",
            UA + "IA/",
            UA + "Machinery/",
            UA + "ISA95-JOBCONTROL_V2/",
            UA + "Machinery/Jobs/",
            TYPES_URI,
            machines_uri("edge"),
            charts_uri("edge"),
        ]

    async def test_metadata_of_each_own_namespace_is_complete(self, client: Client) -> None:
        namespaces = client.get_node(ua.ObjectIds.Server_Namespaces)
        properties = {}
        for node in await namespaces.get_children():
            properties[(await node.read_browse_name()).Name] = {
                (await value.read_browse_name()).Name: await value.read_value() for value in await node.get_properties()
            }
        assert properties.keys() == set(await client.get_namespace_array()), "that of the application had none"
        types, charts = properties[TYPES_URI], properties[charts_uri("edge")]
        assert (types["NamespaceUri"], types["NamespaceVersion"]) == (TYPES_URI, TYPES_VERSION)
        assert (types["NamespacePublicationDate"], types["StaticNodeIdTypes"]) == (TYPES_PUBLISHED, [1])
        assert (charts["NamespaceUri"], charts["NamespaceVersion"], charts["StaticNodeIdTypes"]) == (
            charts_uri("edge"),
            edge.__version__,
            [],
        )
        assert charts["NamespacePublicationDate"].year >= 2026, "it was the year 1601"

    async def test_job_events_have_a_concrete_type(self, client: Client, space: Space) -> None:
        concrete = client.get_node(ua.NodeId("JobOrderStatusEventType", space.index[TYPES_URI]))
        abstract = ua.NodeId(1006, space.index[UA + "ISA95-JOBCONTROL_V2/"])
        results = await (await space.job_management()).get_child(
            [space.name("JobOrderResults", UA + "Machinery/Jobs/")]
        )

        assert (await concrete.read_attribute(ua.AttributeIds.IsAbstract)).Value.Value is False
        assert (await concrete.get_parent()).nodeid == abstract
        assert await reference_to(results, concrete) == ua.ObjectIds.GeneratesEvent


class TestMembers:
    @pytest.mark.parametrize("name", ["Store", "StoreAndStart", "Update"])
    async def test_methods_with_an_order_have_the_specified_arguments(self, space: Space, name: str) -> None:
        given, answered = await arguments(await space.member("JobOrderControl", name))
        assert given == [("JobOrder", 3008, -1), ("Comment", 21, 1)]
        assert answered == [("ReturnStatus", 9, -1)]

    @pytest.mark.parametrize("name", ["Start", "RevokeStart", "Pause", "Resume", "Stop", "Abort", "Cancel", "Clear"])
    async def test_methods_with_an_order_id_have_the_specified_arguments(self, space: Space, name: str) -> None:
        given, answered = await arguments(await space.member("JobOrderControl", name))
        assert given == [("JobOrderID", 12, -1), ("Comment", 21, 1)]
        assert answered == [("ReturnStatus", 9, -1)]

    async def test_response_methods_have_the_specified_arguments(self, space: Space) -> None:
        by_id = await arguments(await space.member("JobOrderResults", "RequestJobResponseByJobOrderID"))
        by_state = await arguments(await space.member("JobOrderResults", "RequestJobResponseByJobOrderState"))
        assert by_id == [[("JobOrderID", 12, -1)], [("JobResponse", 3013, -1), ("ReturnStatus", 9, -1)]]
        assert by_state == [
            [("JobOrderState", 3006, 1)],
            [("JobResponses", 3013, 1), ("ReturnStatus", 9, -1)],
        ]

    async def test_allowed_resources_are_empty_arrays_of_strings(self, space: Space) -> None:
        for name in (
            "MaterialClassID",
            "MaterialDefinitionID",
            "EquipmentID",
            "PhysicalAssetID",
            "PersonnelID",
        ):
            value = await (await space.member("JobOrderControl", name)).read_data_value()
            assert (value.Value.Value, value.Value.VariantType) == ([], ua.VariantType.String), name

    async def test_max_downloadable_orders_is_that_of_the_machine(self, space: Space) -> None:
        first = await (await space.member("JobOrderControl", "MaxDownloadableJobOrders")).read_data_value()
        second = await (await space.member("JobOrderControl", "MaxDownloadableJobOrders", "station-2")).read_value()
        assert (first.Value.Value, first.Value.VariantType) == (1000, ua.VariantType.UInt16)
        assert second == 65535

    async def test_current_state_of_the_receiver_is_state_not_active(self, space: Space) -> None:
        management = await space.job_management()
        control = await management.get_child([space.name("JobOrderControl", UA + "Machinery/Jobs/")])
        for path in (["0:CurrentState"], ["0:CurrentState", "0:Id"]):
            value = await (await control.get_child(path)).read_data_value(raise_on_bad_status=False)
            assert value.StatusCode.value == ua.StatusCodes.BadStateNotActive

    async def test_option_sets_keep_their_definition(self, client: Client, space: Space) -> None:
        node = client.get_node(ua.NodeId(3009, space.index[UA + "Machinery/Jobs/"]))
        definition = await node.read_data_type_definition()
        assert [field.Name for field in definition.Fields] == ["OrderNumber", "LotNumber", "SerialNumber"]
