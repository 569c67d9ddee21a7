"""Conditions and actions of a chart are carried over, or refused with their place."""

import pytest

from edge.features.recipes.plcopen.reader import import_plcopen
from tests.features.recipes.plcopen.drawn import (
    Json,
    block,
    chart,
    does,
    element,
    faults_of,
    initial,
    inline,
    inputs,
    local,
    recipe_of,
    source,
    st,
    step,
    transition,
    variable,
    warnings_of,
    when,
)

NAMED = f'<transition name="Go"><body>{st(":= ready AND NOT open;")}</body></transition>'
TIMES = local(variable("Long", "TIME", "T#1m"), variable("Number", "INT", "5"), constant=True) + local(
    variable("Changing", "TIME", "T#1s"), variable("Ready", "BOOL")
)


def guarded(condition: str, *more: str, **parts: str) -> bytes:
    return chart(initial(1, "Wait"), transition(2, 1, condition=condition), step(3, "End", 2), *more, **parts)


def text_of(condition: str, *more: str, **parts: str) -> str:
    return str(recipe_of(guarded(condition, *more, **parts))["transitions"][0]["condition"])


def actions_of(*actions: str, **options: object) -> list[Json]:
    data = chart(initial(1, "Wait"), when(2, "go", 1), step(3, "End", 2), block(4, 1, *actions), variables=TIMES)
    found: list[Json] = recipe_of(data, **options)["actions"]
    return found


def test_a_condition_is_inline_named_or_connected() -> None:
    assert text_of(f'<inline name="">{st("a")}</inline>') == "a"
    assert text_of('<reference name="GO"/>', transitions=NAMED) == "ready and not open"
    assert text_of(inputs(7), source(7, "a")) == "a"
    assert text_of(inputs(7), source(7, "gO"), transitions=NAMED) == "ready and not open"
    assert text_of("<connectionPointIn><expression>a AND b</expression></connectionPointIn>") == "a and b"
    assert text_of('<reference name="ready"/>', variables=TIMES) == "Ready"


def test_no_condition_is_always_true() -> None:
    assert [text_of(""), text_of(inputs()), text_of(" ")] == ["always"] * 3


def test_several_connections_are_a_wired_or() -> None:
    sources = (source(7, "a"), source(8, "b AND c", negated="true"))
    assert text_of(inputs(7, 8), *sources) == "a or (not (b and c))"


def test_a_negated_condition_is_its_opposite() -> None:
    data = guarded(inputs(7), source(7, "a OR b")).replace(b"<condition>", b'<condition negated="true">')
    assert recipe_of(data)["transitions"][0]["condition"] == "not (a or b)"


@pytest.mark.parametrize(
    ("condition", "more", "fault"),
    [
        ('<reference name="Nowhere"/>', [], "localId 2, line 6: no transition has the name 'Nowhere'"),
        (inputs(9), [], "localId 2, line 6: the condition is connected to localId 9"),
        (inputs(9), [element("block", 9)], "connected to block 9; networks are not carried over"),
        (inputs(1), [], "connected to step 1; networks are not carried over"),
        ('<inline name=""><FBD/></inline>', [], "a condition in FBD is not carried over"),
        ('<inline name=""><LD/></inline>', [], "a condition in LD is not carried over"),
        ('<inline name=""/>', [], "a condition in - is not carried over"),
        (f'<inline name="">{st(" ")}</inline>', [], "the condition is empty"),
        (inputs(9), [source(9, "a", edge="rising")], "localId 9, line 8: the modifier edge is not carried over"),
        (inputs(9), [source(9, "a", storage="set")], "the modifier storage is not carried over"),
        (inputs(9), [source(9, "f(a)")], "localId 9, line 8: the call f(…) is not carried over"),
        (f'<inline name="">{st("Wait.T + T#1s > T#2s")}</inline>', [], "cannot be part of a calculation"),
    ],
)
def test_a_condition_without_equal_is_a_fault(condition: str, more: list[str], fault: str) -> None:
    assert any(fault in text for text in faults_of(guarded(condition, *more)))


def test_a_fault_of_a_named_transition_names_it() -> None:
    broken = f'<transition name="Go"><body>{st("a := b; c := d;")}</body></transition>'
    (fault,) = faults_of(guarded('<reference name="go"/>', transitions=broken))
    assert fault.startswith("Go, line 4: statements are not carried over")


@pytest.mark.parametrize("qualifier", ["N", "P", "P1", "P0", "S", "L", "D", "SD", "DS", "SL"])
def test_qualifiers_and_durations_are_carried_over(qualifier: str) -> None:
    timed = qualifier in {"L", "D", "SD", "DS", "SL"}
    (action,) = actions_of(does("Go", qualifier, "TIME#1m30s" if timed else ""))
    assert (action["qualifier"], action.get("duration_seconds")) == (qualifier, 90 if timed else None)


def test_r_resets_what_s_has_set() -> None:
    assert [action["qualifier"] for action in actions_of(does("Go", "S"), does("go", "R"))] == ["S", "R"]
    assert {action["name"] for action in actions_of(does("Go", "S"), does("go", "R"))} == {"Go"}


def test_a_duration_may_be_a_constant() -> None:
    assert actions_of(does("Go", "L", "LONG"))[0]["duration_seconds"] == 60


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        (does("Go", "DL", "T#1s"), "localId 4, Go, line 8: qualifier DL is not carried over"),
        (does("Go", "XX"), "qualifier XX is not carried over"),
        (does("Go", "L"), "qualifier L needs a duration"),
        (does("Go", "L", "T#0s"), "qualifier L needs a duration"),
        (does("Go", "L", "T#-1s"), "qualifier L needs a duration"),
        (does("Go", "L", "T#99999999d"), "qualifier L needs a duration"),
        (does("Go", "L", "Changing"), "not 'Changing'"),
        (does("Go", "L", "Number"), "not 'Number'"),
        (does("Go", "R"), "localId 4, Go, line 8: actions[0]"),
        (does(""), "one reference with a name"),
        ('<action localId="0"/>', "one reference with a name"),
        (inline("x := 1;"), "localId 4, line 8: the body 'x := 1;' of an inline action is not carried over"),
        (inline("Go(1);"), "'Go(1);'"),
        (inline("Go; Stop;"), "'Go; Stop;'"),
        (inline("RETURN;"), "'RETURN;'"),
        (inline(""), "''"),
        (inline("(* a"), "'(* a'"),
    ],
)
def test_an_action_without_equal_is_a_fault(action: str, fault: str) -> None:
    data = chart(initial(1, "Wait"), when(2, "go", 1), step(3, "End", 2), block(4, 1, action), variables=TIMES)
    assert any(fault in text for text in faults_of(data)), faults_of(data)


@pytest.mark.parametrize("body", ["Weld", "Weld;", " Weld ( ) ; ", "Weld(); // on", "(* off *) Weld"])
def test_an_inline_body_of_one_name_or_call_is_that_action(body: str) -> None:
    assert actions_of(inline(body))[0]["name"] == "Weld"
    assert actions_of(inline("fb.Start();"))[0]["type_id"] == "plcopen.fb_start.v1"


def test_parts_that_are_left_out_are_warnings() -> None:
    body = f'<action name="Go"><body>{st("x := 1;")}</body></action>'
    blocks = block(4, 1, does("Go", "N", "T#5s").replace(" qualifier", ' indicator="done" qualifier'))
    data = chart(initial(1, "Wait"), when(2, "a", 1), step(3, "End", 2), blocks, source(5, "x"), actions=body)
    warnings = "\n".join(warnings_of(import_plcopen(data)))
    for text in ("N has no duration; T#5s is left out", "indicator 'done'", "nothing uses", "body of the action in ST"):
        assert text in warnings
