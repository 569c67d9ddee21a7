"""The network of the test holds back what is sent in a direction that is cut, and delivers it after the repair."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.sentinel.network import Network

QUIET_S = 0.3
"""How long silence is waited for."""


@dataclass(frozen=True)
class Ends:
    """A server `far`, a port of the network that leads to it, and a connection between both."""

    network: Network
    address: int
    source: str
    listener: socket.socket
    near: socket.socket
    far: socket.socket

    def connect(self) -> socket.socket:
        """Open another connection."""
        return socket.create_connection(("127.0.0.1", self.address), 10, (self.source, 0))


@pytest.fixture
def ends() -> Iterator[Ends]:
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network())
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(10)
        source = network.add("near")
        address = network.listen("far", listener.getsockname()[1])
        near = stack.enter_context(socket.create_connection(("127.0.0.1", address), 10, (source, 0)))
        far = stack.enter_context(listener.accept()[0])
        far.settimeout(10)
        yield Ends(network, address, source, listener, near, far)


def _is_silent(end: socket.socket) -> bool:
    end.settimeout(QUIET_S)
    try:
        end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(10)
    return False


def test_cut_direction_holds_data_until_the_repair(ends: Ends) -> None:
    """The opposite direction continues; the order stays."""
    ends.network.cut(["near"], ["far"], both=False)
    ends.near.sendall(b"12")
    assert _is_silent(ends.far)
    ends.far.sendall(b"back")
    assert ends.near.recv(4) == b"back"
    ends.network.heal()
    assert ends.far.recv(1) + ends.far.recv(1) == b"12"


def test_end_of_a_process_is_not_seen_across_a_cut(ends: Ends) -> None:
    """A machine that is lost closes nothing."""
    ends.network.cut(["near"], ["far"])
    ends.far.close()
    assert _is_silent(ends.near)
    ends.network.heal()
    assert ends.near.recv(1) == b""


def test_connection_across_a_cut_is_opened_after_the_repair(ends: Ends) -> None:
    """A handshake needs both directions."""
    ends.network.cut(["near"], ["far"], both=False)
    with ends.connect() as late:
        late.sendall(b"hello")
        ends.listener.settimeout(QUIET_S)
        with pytest.raises(TimeoutError):
            ends.listener.accept()
        ends.listener.settimeout(10)
        ends.network.heal()
        with ends.listener.accept()[0] as far:
            far.settimeout(10)
            assert far.recv(5) == b"hello"


def test_cut_of_other_nodes_leaves_a_connection_alone(ends: Ends) -> None:
    ends.network.cut(["other"], ["far"])
    ends.near.sendall(b"1")
    assert ends.far.recv(1) == b"1"
