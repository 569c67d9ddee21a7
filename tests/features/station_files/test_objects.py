"""Files and store are compared object by object; the result is in the order of applying."""

import pytest

from edge.app.documents import Described
from edge.features.station_files.objects import ObjectChange, ObjectKind, StationObject, compare, summary

RULE = StationObject("rule", "", "hot")
WRENCH = StationObject(ObjectKind.EQUIPMENT, "s", "wrench")
LIMIT = StationObject(ObjectKind.JOB_ACCEPTANCE, "s", "")


def test_differences_are_missing_changed_and_extra_in_order() -> None:
    files = {RULE: Described({"at": 1}, "rules/a.json"), LIMIT: Described(5, "scopes/s/station.json")}
    object_differences = compare(files, {RULE: Described({"at": 2}), WRENCH: Described()})
    assert [
        (object_difference.change, str(object_difference.subject), object_difference.file)
        for object_difference in object_differences
    ] == [
        (ObjectChange.EXTRA, "equipment s/wrench", ""),
        (ObjectChange.MISSING, "jobacceptance s", "scopes/s/station.json"),
        (ObjectChange.CHANGED, "rule hot", "rules/a.json"),
    ]
    assert str(summary(object_differences)) == "1 missing, 1 changed, 1 not in the files"


def test_state_of_a_flow_is_not_a_difference() -> None:
    flow = StationObject("flow", "", "count")
    assert compare({flow: Described({}, "f", "stopped")}, {flow: Described({})}) == ()
    assert summary(()) == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": True}, {"a": 1}, False),
        ([{"a": False}], [{"a": 0}], False),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ("text", {"a": 1}, False),
    ],
)
def test_contents_are_compared_as_json(one: object, other: object, *, same: bool) -> None:
    assert (compare({RULE: Described(one)}, {RULE: Described(other)}) == ()) is same
