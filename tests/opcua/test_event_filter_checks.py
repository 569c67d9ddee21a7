"""Each fault of an event filter is named at its element and operand (OPC 10000-4, 7.7 and 7.22.3)."""

from typing import Any

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData

from edge.opcua.event_filter import event_filter_result, event_filter_status
from edge.opcua.limits import FILTER_ELEMENTS, SELECT_CLAUSES

O, C = ua.FilterOperator, ua.StatusCodes  # noqa: E741 - short names for the tables below
TYPE, OBJECT, UNKNOWN = ua.NodeId(2041), ua.NodeId(2253), ua.NodeId("nowhere", 8)
FIELD = ua.SimpleAttributeOperand(BrowsePath=[ua.QualifiedName("Message")], AttributeId=ua.AttributeIds.Value)


def literal(value: object) -> ua.LiteralOperand:
    return ua.LiteralOperand(ua.Variant(value))


def to(index: int) -> ua.ElementOperand:
    return ua.ElementOperand(Index=index)


def where(*elements: tuple[Any, ...]) -> ua.EventFilter:
    made = [ua.ContentFilterElement(FilterOperator=kind, FilterOperands=list(rest)) for kind, *rest in elements]
    return ua.EventFilter(SelectClauses=[FIELD], WhereClause=ua.ContentFilter(Elements=made))


@pytest.fixture
def aspace() -> AddressSpace:
    space = AddressSpace()
    for node_id, kind in ((TYPE, ua.NodeClass.ObjectType), (OBJECT, ua.NodeClass.Object)):
        space[node_id] = NodeData(node_id)
        value = ua.DataValue(ua.Variant(kind, ua.VariantType.Int32))
        space[node_id].attributes[ua.AttributeIds.NodeClass] = AttributeValue(value)
    return space


@pytest.mark.parametrize(
    ("wanted", "faulty", "code", "operands"),
    [
        (where((O.Cast, FIELD, FIELD)), 0, C.BadFilterOperatorUnsupported, []),
        (where((O.Equals, FIELD)), 0, C.BadFilterOperandCountMismatch, []),
        (where((O.Not, to(0))), 0, C.BadFilterOperandInvalid, [C.BadFilterElementInvalid]),
        (where((O.Not, to(1)), (O.Not, to(0))), 1, C.BadFilterOperandInvalid, [C.BadFilterElementInvalid]),
        (where((O.And, FIELD, to(1))), 0, C.BadFilterOperandInvalid, [C.Good, C.BadFilterElementInvalid]),
        (where((O.Not, None)), 0, C.BadFilterOperandInvalid, [C.BadFilterOperandInvalid]),
        (where((O.OfType, literal(1))), 0, C.BadFilterOperandInvalid, [C.BadFilterLiteralInvalid]),
        (where((O.OfType, literal(UNKNOWN))), 0, C.BadFilterOperandInvalid, [C.BadFilterLiteralInvalid]),
        (where((O.OfType, literal(OBJECT))), 0, C.BadFilterOperandInvalid, [C.BadFilterLiteralInvalid]),
    ],
    ids=[
        "operator",
        "count",
        "itself",
        "loop",
        "beyond the end",
        "no operand",
        "no node id",
        "unknown type",
        "no type",
    ],
)
def test_filter_fault_is_reported_at_its_element(
    aspace: AddressSpace, wanted: ua.EventFilter, faulty: int, code: int, operands: list[int]
) -> None:
    assert event_filter_status(wanted, aspace).value == C.BadEventFilterInvalid
    elements = event_filter_result(wanted, aspace).WhereClauseResult.ElementResults
    assert [element.StatusCode.is_good() for element in elements] == [index != faulty for index in range(len(elements))]
    assert elements[faulty].StatusCode.value == code
    assert [value.value for value in elements[faulty].OperandStatusCodes] == operands


@pytest.mark.parametrize(
    "wanted",
    [
        where(),
        where((O.OfType, literal(TYPE))),
        where((O.OfType, FIELD)),
        where((O.And, to(1), to(1)), (O.IsNull, FIELD)),
        where((O.Or, to(1), to(2)), (O.Not, to(2)), (O.IsNull, FIELD)),
        where(*[(O.IsNull, FIELD)] * FILTER_ELEMENTS),
    ],
    ids=["nothing", "type", "type of a field", "twice from one", "from two", "many"],
)
def test_valid_filter_is_good(aspace: AddressSpace, wanted: ua.EventFilter) -> None:
    assert event_filter_status(wanted, aspace).is_good()


@pytest.mark.parametrize(
    "wanted",
    [
        ua.EventFilter(),
        ua.EventFilter(SelectClauses=[FIELD] * (SELECT_CLAUSES + 1)),
        where(*[(O.IsNull, FIELD)] * (FILTER_ELEMENTS + 1)),
    ],
    ids=["no clause", "many clauses", "many elements"],
)
def test_filter_out_of_bounds_is_refused_as_a_whole(aspace: AddressSpace, wanted: ua.EventFilter) -> None:
    assert event_filter_status(wanted, aspace).value == C.BadEventFilterInvalid
    assert event_filter_result(wanted, aspace) == ua.ExtensionObject()
