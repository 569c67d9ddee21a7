"""The connections of the OPC UA server are examined by connecting, its announcement by its file."""

import pytest

from edge.config import OpcuaSettings
from edge.features.admin.opcua_check import examine_port
from edge.model.finding import Level
from tests.app.opcua_answering import answering, only
from tests.free_ports import free_port


@pytest.mark.parametrize(
    ("words", "level"),
    [(b"ACKF", Level.OK), (b"ERRF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)],
)
async def test_opcua_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        assert (await only(examine_port(OpcuaSettings(endpoint=endpoint)))).level is level


async def test_closed_port_may_be_of_a_gateway_that_waits_for_its_store() -> None:
    """It said that the gateway does not run, and to install it, while it ran and opened its store again."""
    finding = await only(examine_port(OpcuaSettings(endpoint=f"opc.tcp://127.0.0.1:{free_port()}")))
    assert finding.level is Level.WARNING
    assert "no gateway serves there" in finding.found
    assert finding.advice.startswith("A gateway that runs opens it as soon as it has its store.")


async def test_disabled_server_is_ok() -> None:
    assert (await only(examine_port(OpcuaSettings(endpoint="")))).level is Level.OK


async def test_address_without_an_interface_is_reported() -> None:
    """The doctor advised to stop another program where an address had not come yet."""
    # TEST-NET-1 (RFC 5737): no machine has it.
    finding = await only(examine_port(OpcuaSettings(endpoint="opc.tcp://192.0.2.1:4840")))
    assert (finding.level, finding.found) == (
        Level.FAILING,
        "no interface of this machine has the address of opc.tcp://192.0.2.1:4840",
    )
