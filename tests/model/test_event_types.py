"""Call types of MicroDCS map to the same methods."""

import pytest

from edge.model.event_types import METHOD_TYPE, answer_type, canonical_type


@pytest.mark.parametrize(
    ("microdcs", "method"),
    [
        ("org.opcfoundation.ISA95-JOBCONTROL_V2.StoreAndStart{}.v2", "StoreAndStart"),
        ("org.opcfoundation.Machinery.Jobs.RequestJobResponseByJobOrderID{}.v1", "RequestJobResponseByJobOrderID"),
    ],
)
def test_microdcs_call_type_maps_to_the_same_method(microdcs: str, method: str) -> None:
    assert canonical_type(microdcs.format("Call")) == METHOD_TYPE.format(method)
    assert answer_type(microdcs.format("Call")) == microdcs.format("Response")


@pytest.mark.parametrize("event_type", [METHOD_TYPE.format("Store"), "com.example.StoreCall.v2", "", "StoreCall.v2"])
def test_other_event_types_are_unchanged(event_type: str) -> None:
    assert canonical_type(event_type) == answer_type(event_type) == event_type
