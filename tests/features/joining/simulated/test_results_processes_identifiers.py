"""A simulated controller returns the identifiers that were sent, by any of their names."""

import pytest
from asyncua import Client, ua

from edge.features.joining.simulated.controller import open_ijt

pytestmark = pytest.mark.slow


async def test_text_identifier_is_returned_by_its_text_until_it_is_reset() -> None:
    """It was searched for by a name that a text identifier does not have."""
    async with open_ijt(delay=None) as controller, Client(controller.device.url) as client:
        node = client.nodes.objects
        for name in ("Machines", "wrench", "AssetManagement", "MethodSet"):
            described = await node.get_children_descriptions()
            node = client.get_node(next(value.NodeId for value in described if value.BrowseName.Name == name))
        methods = {
            description.BrowseName.Name: description.NodeId for description in await node.get_children_descriptions()
        }

        async def call(name: str, *arguments: ua.Variant) -> ua.CallMethodResult:
            request = ua.CallMethodRequest(
                node.nodeid, methods[name], [ua.Variant("", ua.VariantType.String), *arguments]
            )
            (result,) = await client.uaclient.call([request])
            return result

        def texts(*values: str) -> ua.Variant:
            return ua.Variant(list(values), ua.VariantType.String, is_array=True)

        async def listed(*names: str) -> int:
            return len((await call("GetIdentifiers", texts(*names))).OutputArguments[0].Value or ())

        no = ua.Variant(False)
        await call("SendTextIdentifiers", texts("VIN-1", "VIN-2"))
        assert [await listed("VIN-1"), await listed(), await listed("VIN-3")] == [1, 2, 0]
        await call("ResetIdentifiers", texts("VIN-1"), no, no)
        assert [await listed("VIN-1"), await listed()] == [0, 1]
        assert (await call("SendTextIdentifiers")).StatusCode.name == "BadArgumentsMissing"
        assert (await call("GetIdentifiers", texts(), texts())).StatusCode.name == "BadTooManyArguments"
