"""The reasons for which a station refuses a job order."""

import pytest

from edge.foundation.text import Text
from edge.model.acceptance import (
    MAX_BYTES,
    MAX_NESTING,
    MAX_TEXT_LENGTH,
    Allowed,
    ResourceKind,
    refusal_reasons,
    validate_id,
    validate_order,
)
from edge.model.isa95 import (
    Equipment,
    EUInformation,
    JobOrder,
    Material,
    Parameter,
    Personnel,
    PhysicalAsset,
    WorkMaster,
)


@pytest.mark.parametrize("text", ["J1", "a b", "a:b/c", "größe 螺丝 🔩", "x" * 255, "listing", "a list:", "LIST:x"])
def test_printable_id_is_accepted(text: str) -> None:
    assert list(validate_id("JobOrderID", text)) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("x" * 256, "longer than 255"),
        ("a\nb", "cannot be printed"),
        ("a\0", "cannot be printed"),
        ("\ud800", "cannot be printed"),
        ("list:s", "may not begin with list:"),
        ("open:s", "may not begin with"),
        ("changes:_global", "may not begin with"),
    ],
)
def test_invalid_id_is_refused_with_the_reason(text: str, fault: str) -> None:
    (reasons,) = validate_id("JobOrderID", text)
    assert str(reasons).startswith("JobOrderID ")
    assert fault in str(reasons)


@pytest.mark.parametrize("priority", [None, 0, -(2**15), 2**15 - 1])
def test_priority_of_sixteen_bits_is_accepted(priority: int | None) -> None:
    assert validate_order(JobOrder(job_order_id="J1", priority=priority)) == []


@pytest.mark.parametrize("priority", [-(2**15) - 1, 2**15, 10**30])
def test_priority_beyond_sixteen_bits_is_refused(priority: int) -> None:
    assert validate_order(JobOrder(job_order_id="J1", priority=priority)) == [Text("Priority is not an Int16")]


def test_order_without_resources_is_accepted() -> None:
    assert refusal_reasons(JobOrder(job_order_id="J1"), Allowed()) == []


def test_every_resource_of_an_order_must_be_allowed() -> None:
    order = JobOrder(
        job_order_id="J1",
        work_master_id=(WorkMaster(id="w"), WorkMaster(id="w2")),
        equipment_requirements=(Equipment(id="e"),),
        personnel_requirements=(Personnel(id="p"),),
        physical_asset_requirements=(PhysicalAsset(id="a"),),
        material_requirements=(
            Material(material_class_id="c", material_definition_id="d"),
            Material(material_lot_id="any"),
        ),
    )
    resources = {
        ResourceKind.EQUIPMENT: frozenset({"e"}),
        ResourceKind.PERSONNEL: frozenset({"p"}),
        ResourceKind.PHYSICAL_ASSET: frozenset({"a"}),
        ResourceKind.MATERIAL_CLASS: frozenset({"c"}),
        ResourceKind.MATERIAL_DEFINITION: frozenset({"d"}),
    }
    allowed = Allowed(work_masters=frozenset({"w", "w2"}), resources=resources)
    assert refusal_reasons(order, allowed) == []
    reasons = refusal_reasons(order, Allowed(work_masters=frozenset({"w"})))
    assert [str(line).split(" is")[0] for line in reasons] == [
        "Work Master 'w2'",
        "equipment 'e'",
        "materialclass 'c'",
        "materialdefinition 'd'",
        "personnel 'p'",
        "physicalasset 'a'",
    ]


def nested(levels: int) -> Parameter:
    """Return a parameter that is so many levels deep."""
    parameter = Parameter(id="p", value=1)
    for _ in range(levels - 1):
        parameter = Parameter(id="p", subparameters=(parameter,))
    return parameter


def order_with(*parameters: Parameter) -> JobOrder:
    return JobOrder(job_order_id="J1", job_order_parameters=parameters)


@pytest.mark.parametrize(
    "order",
    [
        order_with(nested(MAX_NESTING)),
        order_with(Parameter(id="p", value=[[[{"a": [1, 2]}]]])),
        order_with(Parameter(id="p", value="x" * MAX_TEXT_LENGTH)),
        order_with(*(Parameter(id=f"p{n}", value="x" * 60_000) for n in range(4))),
        order_with(*(Parameter(id=f"p{n}", value=n) for n in range(5000))),
    ],
    ids=["deep", "a value that is a structure", "a long text", "many long texts", "many parameters"],
)
def test_large_order_is_accepted(order: JobOrder) -> None:
    assert validate_order(order) == []


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        (order_with(nested(MAX_NESTING + 1)), f"nested deeper than {MAX_NESTING} levels"),
        (order_with(nested(800)), f"nested deeper than {MAX_NESTING} levels"),
        (order_with(Parameter(id="p", value=[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]])), "nested deeper"),
        (order_with(Parameter(id="p", value="x" * (MAX_TEXT_LENGTH + 1))), "a text longer than"),
        (order_with(Parameter(id="p", value={"x" * (MAX_TEXT_LENGTH + 1): 1})), "a text longer than"),
        (order_with(Parameter(id="p", engineering_units=EUInformation(namespace_uri="x" * 70_000))), "a text longer"),
        (order_with(*(Parameter(id=f"p{n}", value="x" * 60_000) for n in range(5))), f"larger than {MAX_BYTES} bytes"),
        (order_with(*(Parameter(id=f"p{n}", value=n) for n in range(20_000))), f"larger than {MAX_BYTES} bytes"),
    ],
)
def test_order_too_large_or_too_deep_for_the_job_list_is_refused(order: JobOrder, fault: str) -> None:
    (text,) = validate_order(order)
    assert fault in str(text)
