"""The arguments of a flow method have the spelling of OPC UA."""

import msgspec
import pytest

from edge.features.flows.messages import FlowCall
from edge.model.isa95 import read_payload


def test_arguments_are_read() -> None:
    call = read_payload({"FlowID": "f", "Reason": "night", "By": "bo", "Component": 1}, FlowCall)
    assert call == FlowCall(flow_id="f", reason="night", by="bo", component=1)


@pytest.mark.parametrize("data", [None, {}, {"FlowID": 5}, {"FlowID": "f", "Component": "x"}])
def test_wrong_arguments_are_refused(data: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_payload(data, FlowCall)
