"""A net rebuilds every request of a decision."""

import pytest

from edge.sfc.net import request_of
from edge.sfc.signal import Phase
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of


def test_requests_can_be_rebuilt_for_every_phase() -> None:
    driven = Driven(net_of(chain("A B", action("s", "A", "S"), action("s", "B", "R", type_id="off"))))
    start = request_of(driven.net, driven.run, Phase.START, "J1/R1/s/1", "A")
    reset = request_of(driven.net, driven.run, Phase.RESET, "J1/R1/s/1/reset", "B")
    assert start == driven.requests[0]
    assert (start.type_id, reset.type_id, reset.attempt) == ("s.v1", "off", 1)


def test_invalid_command_id_is_refused() -> None:
    driven = Driven(net_of(chain("A")))
    with pytest.raises(ValueError, match="not a command of this station"):
        request_of(driven.net, driven.run, Phase.START, "nonsense", "A")
