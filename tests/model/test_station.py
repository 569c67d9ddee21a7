"""Why a station refuses a job order."""

import pytest

from edge.model.isa95 import Equipment, JobOrder, Material, Personnel, PhysicalAsset, WorkMaster
from edge.model.station import Allowed, ResourceKind, faults_of_id, faults_of_order, refusals


@pytest.mark.parametrize("text", ["J1", "a b", "a:b/c", "größe 螺丝 🔩", "x" * 255, "listing", "a list:", "LIST:x"])
def test_an_id_that_can_be_printed_is_fine(text: str) -> None:
    assert list(faults_of_id("JobOrderID", text)) == []


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
def test_an_id_that_is_none_is_told_with_the_reason(text: str, fault: str) -> None:
    (told,) = faults_of_id("JobOrderID", text)
    assert told.startswith("JobOrderID ")
    assert fault in told


@pytest.mark.parametrize("priority", [None, 0, -(2**15), 2**15 - 1])
def test_a_priority_of_sixteen_bits_is_fine(priority: int | None) -> None:
    assert faults_of_order(JobOrder(job_order_id="J1", priority=priority)) == []


@pytest.mark.parametrize("priority", [-(2**15) - 1, 2**15, 10**30])
def test_a_priority_of_more_bits_is_a_fault(priority: int) -> None:
    assert faults_of_order(JobOrder(job_order_id="J1", priority=priority)) == ["Priority is no Int16"]


def test_an_order_that_names_nothing_is_never_refused() -> None:
    assert refusals(JobOrder(job_order_id="J1"), Allowed()) == []


def test_everything_an_order_names_must_be_allowed() -> None:
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
    assert refusals(order, allowed) == []
    told = refusals(order, Allowed(work_masters=frozenset({"w"})))
    assert [line.split(" is")[0] for line in told] == [
        "Work Master 'w2'",
        "equipment 'e'",
        "materialclass 'c'",
        "materialdefinition 'd'",
        "personnel 'p'",
        "physicalasset 'a'",
    ]
