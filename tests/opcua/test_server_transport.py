"""Messages over a connection: calls are decoded by the product's own code, and malformed ones do no harm."""

import struct

import pytest
from asyncua import Client, ua
from asyncua.common.utils import Buffer, NotEnoughData, ServiceError
from asyncua.ua import ua_binary
from asyncua.ua.ua_binary import struct_from_binary, struct_to_binary

from edge.opcua.services import read_calls
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client

pytestmark = pytest.mark.asyncio(loop_scope="module")


def body_of(*calls: ua.CallMethodRequest) -> Buffer:
    return Buffer(struct_to_binary(ua.CallParameters(MethodsToCall=list(calls))))


class TestCalls:
    async def test_calls_are_read_with_their_arguments(self) -> None:
        order = ua.ExtensionObject(TypeId=ua.NodeId(5014, 5), Body=b"\0\1")
        call = ua.CallMethodRequest(
            ObjectId=ua.NodeId("station-1", 8),
            MethodId=ua.NodeId(7001, 5),
            InputArguments=[ua.Variant(order), ua.Variant([ua.LocalizedText("why", "en")])],
        )
        assert read_calls(body_of(call, call)) == [call, call]

    async def test_truncated_call_cannot_be_decoded(self) -> None:
        whole = bytes(body_of(ua.CallMethodRequest(InputArguments=[ua.Variant("job-1")])))
        for length in range(len(whole)):
            with pytest.raises(ServiceError) as caught:
                read_calls(Buffer(whole[:length]))
            assert caught.value.code == ua.StatusCodes.BadDecodingError

    async def test_too_many_calls_at_once_are_refused(self) -> None:
        with pytest.raises(ServiceError) as caught:
            read_calls(body_of(*[ua.CallMethodRequest()] * 101))
        assert caught.value.code == ua.StatusCodes.BadTooManyOperations


async def test_an_array_of_nulls_is_refused_by_every_service(client: Client, server: UaServer) -> None:
    node = client.get_node(ua.ObjectIds.Server_ServiceLevel)
    with pytest.raises(ua.uaerrors.BadDecodingError):
        await node.write_value(ua.Variant([None] * 5, ua.VariantType.Null, is_array=True))
    async with patient_client(server.endpoint) as another:
        assert await another.get_node(ua.ObjectIds.Server_ServiceLevel).read_value() is not None


async def test_asyncua_decodes_any_number_of_null_values() -> None:
    # When this fails, remove `patch_decoder_limits`.
    read = ua_binary._create_uatype_array_deserializer(ua.VariantType.Null)  # noqa: SLF001 - below the replaced function
    assert len(read(Buffer(struct.pack("<i", 1000)))) == 1000


async def test_string_with_a_negative_length_is_refused(
    server: UaServer,
) -> None:
    # Two thousand million locales: each text consumes four bytes, and its length -4 moves the position back by four.
    bomb = struct.pack("<iii", -1, 2**31 - 1, -4) + bytes(8)
    with pytest.raises(NotEnoughData, match="nothing of the length -4"):
        struct_from_binary(ua.GetEndpointsParameters, Buffer(bomb))
    async with patient_client(server.endpoint) as client:
        assert await client.get_node(ua.ObjectIds.Server_ServiceLevel).read_value() is not None
