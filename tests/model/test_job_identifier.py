"""What a job works on is its physical asset, else the VIN or serial number among its parameters."""

from edge.model.isa95 import JobOrder, Parameter, PhysicalAsset
from edge.model.job_identifier import identifier_of, job_identifier


def test_physical_asset_comes_before_the_parameters() -> None:
    assert job_identifier(["", "WVW1"], {"vin": "X"}) == "WVW1"
    assert job_identifier([], {"Serial_Number": 17, "VIN": "WVW2"}) == "WVW2"
    assert job_identifier([], {"Serial_Number": 17, "vin": ""}) == "17"
    assert job_identifier([], {"torque": 8}) == ""


def test_identifier_of_an_order_is_read_from_its_assets_and_parameters() -> None:
    order = JobOrder(job_order_id="J1", job_order_parameters=(Parameter(id="vin", value="WVW3"),))
    assert identifier_of(order) == "WVW3"
    with_asset = JobOrder(job_order_id="J1", physical_asset_requirements=(PhysicalAsset(id="WVW4"),))
    assert identifier_of(with_asset) == "WVW4"
    assert identifier_of(JobOrder(job_order_id="J1")) == ""
