"""The syntax tree: its names, the kinds of its values and the kinds that it needs."""

import pytest

from edge.expression.syntax import (
    MAX_LENGTH,
    ExpressionSyntaxError,
    Kind,
    Name,
    children,
    kind_of,
    names_of,
    needed_kinds,
    nodes_of,
    parse,
)
from edge.foundation.text import Text, languages

FAULTS = (
    *(
        "",
        "a = 1",
        "a ** 2",
        "(a",
        "(a b",
        "a )",
        "a <",
        "1 < )",
        "f(1)",
        "abs()",
        "min(1)",
        "a.",
        "a[b]",
        "round(a, b)",
    ),
    *("9" * 400 + ".0", "?", "(" * 40 + "a", "a" * (MAX_LENGTH + 1)),
)


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:9])
def test_syntax_error_is_stated_in_every_language(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(text)
    assert caught.value.text.in_language("en") == str(caught.value)
    reason = caught.value.text.values.get("reason", caught.value.text)
    assert isinstance(reason, type(caught.value.text))
    assert len({reason.in_language(language) for language in languages()}) == len(languages())


def names(text: str) -> list[str]:
    return [".".join(map(str, name.path)) for name in names_of(parse(text))]


def test_names_are_listed_from_left_to_right() -> None:
    assert names("not a.b and (c + -d > abs(e) or if(f, g, h[1]))") == ["a.b", "c", "d", "e", "f", "g", "h.1"]


@pytest.mark.parametrize("text", ["a", "1", "-a", "not a", "a or b or c", "a < b", "a + b - c", "min(a, b, c)"])
def test_nodes_of_yields_the_node_and_all_its_descendants(text: str) -> None:
    node = parse(text)
    below = [part for child in children(node) for part in nodes_of(child)]
    assert list(nodes_of(node)) == [node, *below]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", Kind.NUMBER),
        ("2s", Kind.NUMBER),
        ("'a'", Kind.STRING),
        ("true", Kind.TRUTH),
        ("a", None),
        ("-a", Kind.NUMBER),
        ("a + b", Kind.NUMBER),
        ("a < b", Kind.TRUTH),
        ("not a", Kind.TRUTH),
        ("min(a, b)", Kind.NUMBER),
        ("if(a, 1, b)", Kind.NUMBER),
        ("if(a, 1, 'x')", None),
        ("coalesce(a, 'x')", Kind.STRING),
        ("coalesce(a, b)", None),
    ],
)
def test_kind_is_derived_from_the_expression(text: str, kind: Kind | None) -> None:
    assert kind_of(parse(text)) is kind


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("a", {"a": Kind.TRUTH}),
        ("a > 5", {"a": Kind.NUMBER}),
        ("a == 'x'", {"a": Kind.STRING}),
        ("a == b", {}),
        ("a == b + 1", {"a": Kind.NUMBER, "b": Kind.NUMBER}),
        ("if(a, b, c) > 1", {"a": Kind.TRUTH, "b": Kind.NUMBER, "c": Kind.NUMBER}),
        ("coalesce(a, b) == true", {"a": Kind.TRUTH, "b": Kind.TRUTH}),
        ("not a and round(b, 1) < c", {"a": Kind.TRUTH, "b": Kind.NUMBER, "c": Kind.NUMBER}),
    ],
)
def test_names_need_the_kind_of_their_position(text: str, needed: dict[str, Kind]) -> None:
    kinds = {part.path[0]: kind for part, kind in needed_kinds(parse(text), Kind.TRUTH) if isinstance(part, Name)}
    assert kinds == needed


def test_syntax_error_counts_positions_from_one() -> None:
    assert str(ExpressionSyntaxError(Text("wrong"), 0)) == "wrong (at character 1)"
    assert str(ExpressionSyntaxError(Text("wrong"))) == "wrong"
