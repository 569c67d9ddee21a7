"""The kind of reason why a reader of codes cannot be reached."""

from contextlib import AbstractAsyncContextManager

import pytest

from edge.features.readers.line_stream import open_serial_lines, open_tcp_lines
from edge.foundation.errors import Unavailable
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import ConnectionFault
from tests.links.peers import NO_HOST, NO_PORT, fault


def lines(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_tcp_lines(host, port, framed=False)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ConnectionFault.REFUSED),
        ("localhost", ConnectionFault.REFUSED),
        (NO_HOST, ConnectionFault.NO_HOST),
    ],
)
async def test_host_that_cannot_be_reached_has_its_kind(host: str, expected: ConnectionFault) -> None:
    assert (await fault(lines, host, NO_PORT))[0] is expected


async def test_missing_serial_port_is_unreachable() -> None:
    with pytest.raises(Unavailable) as raised:
        async with open_serial_lines("/dev/no-such-port", 9600, framed=False):
            pytest.fail("there is such a port")
    assert fault_of(raised.value) is ConnectionFault.UNREACHABLE
