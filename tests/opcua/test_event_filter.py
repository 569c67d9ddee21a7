"""Event filters follow the tables of OPC 10000-4, 7.7.3, with null as a third truth value."""

from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.text import Text
from edge.opcua.access import reading_in
from edge.opcua.event_filter import EventRecord, matches, select_fields
from edge.opcua.limits import FILTER_ELEMENTS

Op = ua.FilterOperator
BASE, ALARM, OTHER = ua.NodeId(2041), ua.NodeId(2915), ua.NodeId(9341)
CONDITION = ua.NodeId("a", 10)
EVENT = EventRecord(
    (ALARM, ua.NodeId(2782), BASE),
    {
        "Severity": ua.Variant(500, ua.VariantType.UInt16),
        "Message": ua.Variant(ua.LocalizedText("too hot", "en")),
        "ActiveState/Id": ua.Variant(True, ua.VariantType.Boolean),
        "Time": ua.Variant(datetime(2026, 1, 2, tzinfo=UTC)),
    },
    CONDITION,
)


def field(*path: str, type_id: ua.NodeId = BASE, attribute: int = 13) -> ua.SimpleAttributeOperand:
    names = [ua.QualifiedName(name) for name in path]
    return ua.SimpleAttributeOperand(type_id, names, ua.AttributeIds(attribute))


def literal(value: Any) -> ua.LiteralOperand:
    return ua.LiteralOperand(Value=ua.Variant(value))


def where(*elements: tuple[Any, ...]) -> ua.ContentFilter:
    return ua.ContentFilter(
        [ua.ContentFilterElement(FilterOperator=kind, FilterOperands=list(operands)) for kind, *operands in elements]
    )


def at(index: int) -> ua.ElementOperand:
    return ua.ElementOperand(index)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ((), True),
        (((Op.OfType, literal(BASE)),), True),
        (((Op.OfType, literal(OTHER)),), False),
        (((Op.Equals, field("Severity"), literal(500)),), True),
        (((Op.GreaterThan, field("Severity"), literal(500)),), False),
        (((Op.GreaterThanOrEqual, field("Severity"), literal(500)),), True),
        (((Op.LessThan, field("Severity"), literal(501)),), True),
        (((Op.LessThan, field("Severity"), literal("x")),), False),
        (((Op.Between, field("Severity"), literal(400), literal(600)),), True),
        (((Op.Between, field("Severity"), literal(600), literal(400)),), False),
        (((Op.InList, field("Severity"), literal(1), literal(500)),), True),
        (((Op.IsNull, field("Nothing")),), True),
        (((Op.IsNull, field("Severity")),), False),
        (((Op.Equals, field("Message"), literal("too hot")),), True),
        (((Op.Equals, field("ActiveState", "Id"), literal(True)),), True),
        (((Op.LessThan, field("Time"), literal(datetime(2026, 1, 3))),), True),  # noqa: DTZ001
        (((Op.Equals, field(type_id=ua.NodeId(2782), attribute=1), literal(CONDITION)),), True),
        (((Op.Not, at(1)), (Op.Equals, field("Nothing"), literal(1))), False),
        (((Op.Or, at(1), at(2)), (Op.Equals, field("Nothing"), literal(1)), (Op.OfType, literal(BASE))), True),
        (((Op.And, at(1), at(2)), (Op.Equals, field("Nothing"), literal(1)), (Op.OfType, literal(BASE))), False),
    ],
)
def test_where_clause_follows_its_operators(elements: tuple[Any, ...], expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert matches(where(*elements), EVENT) is expected


def test_filter_element_with_many_references_is_evaluated_once() -> None:
    # By every path, the last element would be evaluated 2 ** 63 times.
    both = [(Op.And, at(index), at(index)) for index in range(1, FILTER_ELEMENTS)]
    assert matches(where(*both, (Op.OfType, literal(BASE))), EVENT)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("main", "main%", True),
        ("main", "%ai%", True),
        ("main", "m_in", True),
        ("main", "m__in", False),
        ("main", "[a-m]ain", True),
        ("main", "[^m]ain", False),
        ("100%", "100\\%", True),
        ("100x", "100\\%", False),
        ("abab", "%ab", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("", "%", True),
        ("x", "[", False),
        ("x", "[z-a]", False),
        ("-", "[[--]", False),
        ("-", "[a-]", True),
        ("b", "[a-c-e]", True),
    ],
)
def test_like_follows_the_wildcards_of_the_standard(text: str, pattern: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    clause = where((Op.Like, literal(text), literal(pattern)))
    assert matches(clause, EVENT) is expected


@given(st.text(alphabet="ab%_[]^-\\", max_size=30), st.text(alphabet="ab", max_size=200))
def test_like_evaluates_any_pattern(pattern: str, text: str) -> None:
    assert matches(where((Op.Like, literal(text), literal(pattern))), EVENT) in {True, False}


def test_select_clause_of_another_type_is_null() -> None:
    clauses = [
        field("Severity"),
        field("Severity", type_id=OTHER),
        field("Severity", type_id=ALARM),
        field(type_id=ua.NodeId(2782), attribute=1),
        field("Severity", attribute=3),
        field("Unheard"),
    ]
    assert [value.Value for value in select_fields(EVENT, clauses)] == [500, None, 500, CONDITION, None, None]


def test_message_is_in_the_language_of_the_session_that_reads() -> None:
    event = EventRecord((BASE,), {}, message=Text.of("events were discarded: the queue is full"))
    with reading_in(("fr-CA",)):
        (message,) = select_fields(event, [field("Message")])
    assert (message.Value.Text[:24], message.Value.Locale) == ("des événements ont été r", "fr")
    assert matches(where((Op.Like, field("Message"), literal("events were%"))), event)
