"""Charts in the shape in which tools write them are read, or refused with every place named.

The facts are those of public files: the examples of Beremiz, the one of the TC6 specification, exports of CODESYS. Each
chart here was written for its test.
"""

import pytest

from tests.features.recipes.plcopen.drawn import (
    block,
    chart,
    choice,
    does,
    element,
    faults_of,
    fork,
    initial,
    inline,
    inputs,
    join,
    jump,
    local,
    meet,
    recipe_of,
    source,
    st,
    step,
    transition,
    variable,
    when,
)

ENTRY = "a6b08bd8-b696-47e3-9cbf-7408b61c9ff8"
ACTIVE = "700a583f-b4d4-43e4-8c14-629c7cd3bec8"
EXIT = "a2621e18-7de3-4ea6-ae6d-89e9e0b7befd"


def codesys(**attributes: str) -> str:
    """Return the `addData` that CODESYS writes at an element; the names of guids are those above, else the guid."""
    words = "".join(
        f'<attribute guid="{globals().get(name, name.strip("_").replace("_", "-"))}">{value}</attribute>'
        for name, value in attributes.items()
    )
    name = "http://www.3s-software.com/plcopenxml/sfc/element"
    content = f'<attributes xmlns="">{words}</attributes>'
    return f'<addData><data name="{name}" handleUnknown="implementation">{content}</data></addData>'


def connected(number: int, value: int, *after: int) -> str:
    return transition(number, *after, condition=inputs(value))


def test_a_counter_of_inline_assignments_is_refused_at_each_of_them() -> None:
    """Beremiz, first_steps: a selection whose actions assign values."""
    data = chart(
        initial(1, "Begin"),
        choice(2, 1),
        when(3, "Clear", 2, x=9),
        when(4, "NOT Clear", 2),
        step(5, "Zero", 3),
        block(6, 5, inline("N := 0;"), inline("Sum := N;")),
        step(7, "Add", 4),
        block(8, 7, inline("N := N + 1;")),
        when(9, "Clear", 7),
        when(10, "NOT Clear", 5),
        join(11, 9, 10),
        jump(12, "BEGIN", 11),
    )
    assert [fault.split(":")[0] for fault in faults_of(data)] == [
        "localId 6, line 10",
        "localId 6, line 10",
        "localId 8, line 12",
    ]


def test_the_same_counter_with_named_actions_is_read() -> None:
    data = chart(
        initial(1, "Begin"),
        choice(2, 1),
        when(3, "Clear", 2, x=9),
        when(4, "NOT Clear", 2),
        step(5, "Zero", 3),
        block(6, 5, does("SetZero")),
        step(7, "Add", 4),
        when(9, "Clear", 7),
        when(10, "NOT Clear", 5),
        join(11, 9, 10),
        jump(12, "BEGIN", 11),
    )
    ways = [(way["source"], way["target"], way["condition"]) for way in recipe_of(data)["transitions"]]
    assert ways == [
        ("Begin", "Add", "not Clear"),
        ("Begin", "Zero", "Clear"),
        ("Zero", "Begin", "not Clear"),
        ("Add", "Begin", "Clear"),
    ]


def test_a_light_with_networks_is_refused_at_each_of_them() -> None:
    """Beremiz, svghmi_traffic_light: FBD in a named transition, contacts and blocks at conditions."""
    network = '<transition name="Halt"><body><FBD><inVariable localId="70"/></FBD></body></transition>'
    data = chart(
        initial(1, "Still"),
        when(2, "Button", 1),
        step(3, "Warn", 2),
        block(4, 3, does("Orange", "S"), does("Orange", "R"), does("StopCars", "D", "T#2s")),
        transition(5, 3, condition='<reference name="Halt"/>'),
        step(6, "Go", 5),
        connected(7, 20, 6),
        step(8, "On", 7),
        element("contact", 20),
        element("leftPowerRail", 21),
        element("block", 22),
        transitions=network,
    )
    assert [fault.split(", line")[0] for fault in faults_of(data)] == [
        "Halt",
        "localId 7",
        "localId 20",
        "localId 21",
        "localId 22",
    ]


def test_a_number_twice_and_coils_at_steps_are_refused_at_each_of_them() -> None:
    """The example of the TC6 specification: 4 stands twice, 5 nowhere, three outVariables at steps."""
    data = chart(
        initial(1, "S0", 12),
        element("outVariable", 2, 1, content="<expression>V3</expression>"),
        source(3, "V1", negated="true"),
        connected(4, 3, 1),
        fork(4, 4),
        step(6, "S1", 5),
        element("outVariable", 7, 6, negated="true"),
        step(8, "S2", 5),
        element("outVariable", 9, 8),
        meet(10, 6, 8),
        source(11, "V2"),
        transition(12, 10, condition=inputs(3)),
    )
    faults = faults_of(data)
    for place in (
        "localId 2,",
        "localId 4, line 9: the localId stands in line 8",
        "localId 6, S1",
        "localId 7,",
        "localId 9,",
    ):
        assert any(fault.startswith(place) for fault in faults), faults


def test_the_example_of_the_specification_is_read_once_it_is_whole() -> None:
    data = chart(
        initial(1, "S0", 12),
        source(3, "V1", negated="true"),
        connected(4, 3, 1),
        fork(5, 4),
        step(6, "S1", 5),
        step(8, "S2", 5),
        meet(10, 6, 8),
        transition(12, 10, condition=inputs(3)).replace("<condition>", '<condition negated="true">'),
    )
    ways = [(way["source"], way["target"], way["condition"]) for way in recipe_of(data)["transitions"]]
    assert ways == [("S0", "Parallel1", "not V1"), ("Parallel1", "S0", "not (not V1)")]


def test_an_export_of_codesys_is_read() -> None:
    """Numbers from 0, no places, conditions as values, a path that ends with a jump and is closed all the same."""
    data = chart(
        initial(0, "Init", content=codesys(ACTIVE="Init_active")),
        source(1, "Ready AND Mode = 1"),
        connected(2, 1, 0),
        step(3, "Lift", 2, content=codesys(ENTRY="Lift_entry", ACTIVE="Lift_active", EXIT="Lift_exit")),
        choice(4, 3),
        source(5, "Up"),
        connected(6, 5, 4),
        step(7, "Turn", 6),
        source(8, "Turned"),
        connected(9, 8, 7),
        source(10, "Fault"),
        connected(11, 10, 4),
        jump(12, "Init", 11),
        join(13, 9, 12),
        step(14, "Drop", 13),
        source(15, "TRUE"),
        connected(16, 15, 14),
        jump(17, "Init", 16),
    )
    recipe = recipe_of(data)
    assert [(way["source"], way["target"], way["condition"]) for way in recipe["transitions"]] == [
        ("Init", "Lift", "Ready and Mode == 1"),
        ("Lift", "Turn", "Up"),
        ("Lift", "Init", "Fault"),
        ("Turn", "Drop", "Turned"),
        ("Drop", "Init", "true"),
    ]
    assert [(action["step"], action["name"], action["qualifier"]) for action in recipe["actions"]] == [
        ("Init", "Init_active", "N"),
        ("Lift", "Lift_entry", "P1"),
        ("Lift", "Lift_active", "N"),
        ("Lift", "Lift_exit", "P0"),
    ]


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        (
            {"_cacf1a68_236e_47c2_b7b1_1cf9199718cb": "T#2s"},
            "localId 0, Init, line 5: MinTime 'T#2s' is not carried over",
        ),
        (
            {"_b693554c_1b01_4a8d_afde_9e3a46f7465d": "T#9s"},
            "localId 0, Init, line 5: MaxTime 'T#9s' is not carried over",
        ),
        ({"_01580b27_6378_448b_8ecb_0e4b795b58d6": "TRUE"}, "localId 0, Init, line 5: the element is excluded"),
    ],
)
def test_attributes_of_codesys_without_form_are_refused(attributes: dict[str, str], fault: str) -> None:
    (reported,) = faults_of(
        chart(initial(0, "Init", content=codesys(**attributes)), when(1, "go", 0), step(2, "End", 1))
    )
    assert reported.startswith(fault)


def test_empty_attributes_of_codesys_mean_nothing() -> None:
    empty = dict.fromkeys(["ENTRY", "ACTIVE", "EXIT", "_cacf1a68_236e_47c2_b7b1_1cf9199718cb"], "")
    data = chart(initial(0, "Init", content=codesys(**empty)), when(1, "go", 0), step(2, "End", 1))
    assert recipe_of(data)["actions"] == []


def test_a_convergence_of_jumps_only_leads_nowhere() -> None:
    data = chart(
        initial(0, "Init"),
        choice(1, 0),
        when(2, "x", 1),
        when(3, "y", 1),
        jump(4, "Init", 2),
        jump(5, "Init", 3),
        join(6, 4, 5),
    )
    assert len(recipe_of(data)["transitions"]) == 2


def test_a_condition_without_inline_is_read_or_refused() -> None:
    """Some tools leave out `inline`; the schema has it."""
    texts = (st("a AND b"), "<FBD/>", "<nonsense/>")
    charts = [chart(initial(1, "Wait"), transition(2, 1, condition=text), step(3, "End", 2)) for text in texts]
    assert recipe_of(charts[0])["transitions"][0]["condition"] == "a and b"
    assert [faults_of(data) for data in charts[1:]] == [
        ["localId 2, line 6: a condition in FBD is not carried over; ST is"],
        ["localId 2, line 6: a condition in - is not carried over; ST is"],
    ]


def test_text_in_any_element_of_xhtml_is_a_condition() -> None:
    condition = (
        '<inline name=""><ST><xhtml xmlns="http://www.w3.org/1999/xhtml">a<br/>AND <b>c</b></xhtml></ST></inline>'
    )
    data = chart(initial(1, "Wait"), transition(2, 1, condition=condition), step(3, "End", 2))
    assert recipe_of(data)["transitions"][0]["condition"] == "a and c"


def test_a_declared_variable_with_the_name_of_a_step_is_the_variable() -> None:
    data = chart(initial(1, "A"), when(2, "B AND B.X", 1), step(3, "B", 2), variables=local(variable("b", "BOOL")))
    assert recipe_of(data)["transitions"][0]["condition"] == "b and steps.B.X"
