"""Real sentinels of Debian and Valkey fail over on the network of the test."""

from pathlib import Path

import pytest

from tests.outside.servers import wait_for
from tests.sentinel.line import PROGRAMS, open_line
from tests.sentinel.network import Network


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.slow
def test_isolated_primary_is_replaced_and_replicates_afterwards(tmp_path: Path, program: str) -> None:
    """Nothing of the rig that is cut reaches the primary, and everything does after the repair."""
    with Network() as network, open_line(tmp_path / "line", network, program=program) as line:
        wait_for(line.settled, "the line works")
        primary, (replica,) = line.nodes[0], line.nodes[1:]
        assert line.primary() is primary
        network.cut([primary.name], [replica.name, *(sentinel.name for sentinel in line.sentinels)])
        wait_for(lambda: line.primary() is replica, "the replica is named", 30)
        replica.call("SET", "key", "new")
        assert primary.call("ROLE")[0] == "master"
        assert primary.call("EXISTS", "key") == 0
        network.heal()
        wait_for(line.settled, "the former primary replicates", 60)
        wait_for(lambda: primary.call("GET", "key") == "new", "the data are those of the primary")
