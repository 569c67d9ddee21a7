"""A file becomes a recipe or all its faults, whatever it holds and within ten seconds."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.recipes.plcopen.reader import Imported, import_plcopen, type_id_of
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from tests.features.recipes.plcopen import drawn
from tests.features.recipes.plcopen.drawn import (
    block,
    chart,
    choice,
    does,
    element,
    faults_of,
    fork,
    initial,
    join,
    local,
    meet,
    project,
    recipe_of,
    step,
    variable,
    warnings_of,
    when,
)

PRESS = chart(
    initial(1, "Wait"),
    when(2, "part AND NOT open", 1),
    step(3, "Press", 2),
    when(4, "Press.T > T#2s", 3),
    step(5, "End", 4),
    block(6, 3, does("CloseDoor", "P"), does("Press_Down")),
    element("comment", 7),
    variables=local(variable("part", "BOOL")),
)
MAP = {"closedoor": {"interaction": "pull_event", "type_id": "com.example.door.v1", "timeout_seconds": 5}}
UNKNOWN = "it is unknown until a result or a parameter of the order has it"
SLOWEST_S = 10


def test_a_chart_becomes_a_recipe_that_compiles() -> None:
    recipe = recipe_of(PRESS, actions=MAP)
    assert isinstance(compile_recipe(recipe), Net)
    assert recipe["actions"] == [
        {
            "name": "CloseDoor",
            "step": "Press",
            "qualifier": "P",
            "interaction": "pull_event",
            "type_id": "com.example.door.v1",
            "timeout_seconds": 5,
        },
        {
            "name": "Press_Down",
            "step": "Press",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": "plcopen.press_down.v1",
        },
    ]


def test_warnings_name_differences_from_the_plc() -> None:
    warnings = warnings_of(import_plcopen(PRESS, actions=MAP))
    assert sum("its step waits for the answer" in warning for warning in warnings) == 1
    assert [warning for warning in warnings if "nothing in the recipe sets" in warning] == [
        f"localId 2, line 6: nothing in the recipe sets {name}: {UNKNOWN}" for name in ("part", "open")
    ]
    assert any("1 comments" in warning for warning in warnings)
    assert any("the map does not name the action; its type id is plcopen.press_down.v1" in item for item in warnings)
    assert not any("nothing in the recipe sets" in w for w in warnings_of(import_plcopen(PRESS, has_defaults=True)))


@pytest.mark.parametrize(
    ("actions", "fault"),
    [
        ({"CloseDoor": 5}, "CloseDoor: an entry of the map must be an object"),
        ({"CloseDoor": {"typeid": "x"}}, "CloseDoor: in the map: unknown key 'typeid'"),
        ({"CloseDoor": {"interaction": "shout"}}, "in the map: 'interaction' must be one of"),
        ({"CloseDoor": {"step": "Wait"}}, "'step' of the map comes from the chart"),
        ({"CloseDoor": {}, "closeDOOR": {}}, "the map names the action twice"),
    ],
)
def test_a_faulty_map_is_a_fault_with_the_name(actions: dict[str, object], fault: str) -> None:
    assert any(fault in text for text in faults_of(PRESS, actions=actions)), faults_of(PRESS, actions=actions)


def test_a_map_may_have_keys_in_pascal_case_and_names_without_action() -> None:
    entry = {"TypeId": "com.example.door.v1", "TimeoutSeconds": 5}
    recipe = recipe_of(PRESS, actions={"CloseDoor": entry})
    assert isinstance(compile_recipe(recipe), Net)
    assert any("'UNUSED'" in warning for warning in warnings_of(import_plcopen(PRESS, actions={"Unused": {}})))


@pytest.mark.parametrize("key", ["type_id", "TypeId"])
def test_a_map_names_the_type_id_in_both_spellings(key: str) -> None:
    assert recipe_of(PRESS, actions={"CloseDoor": {key: "a.b.v1"}})["actions"][0]["type_id"] == "a.b.v1"


def test_type_ids_are_made_of_names() -> None:
    assert type_id_of("Press.Down-Ä") == "plcopen.press_down__.v1"


def timed(data: bytes) -> Imported:
    started = time.process_time()
    imported = import_plcopen(data)
    assert time.process_time() - started < SLOWEST_S
    return imported


def sequence(size: int) -> list[str]:
    elements = [initial(0, "S0")]
    for number in range(1, size):
        elements += [when(2 * number - 1, "go", 2 * number - 2), step(2 * number, f"S{number}", 2 * number - 1)]
    return elements


def compact(*elements: str) -> bytes:
    """Return a chart without positions, so that more elements are within the bounds."""
    return chart(*elements).replace(b'<position x="0" y="0"/>', b"").replace(b' name=""', b' name="i"')


def test_the_largest_sequence_is_read_in_time() -> None:
    recipe = timed(compact(*sequence(4500))).recipe
    assert recipe is not None
    assert len(recipe["steps"]) == 4500


@pytest.mark.parametrize("count", [1000, 3000])
def test_many_paths_are_read_or_refused_in_time(count: int) -> None:
    steps = [step(number, f"P{number}", 2) for number in range(3, count + 3)]
    ends = [meet(count + 3, *range(3, count + 3)), when(count + 4, "end", count + 3), step(count + 5, "End", count + 4)]
    imported = timed(compact(initial(0, "A"), when(1, "go", 0), fork(2, 1), *steps, *ends))
    assert imported.recipe is not None or imported.faults


def test_many_ends_of_many_paths_are_refused_in_time() -> None:
    count = 2500
    steps = [step(number, f"P{number}", 2) for number in range(3, count + 3)]
    ends = [when(number, "end", count + 3) for number in range(count + 4, 2 * count)]
    last = step(2 * count, "End", *range(count + 4, 2 * count))
    imported = timed(
        compact(
            initial(0, "A"), when(1, "go", 0), fork(2, 1), *steps, meet(count + 3, *range(3, count + 3)), *ends, last
        )
    )
    assert any("too large" in fault.stated("en") for fault in imported.faults)


def test_a_net_of_jumps_between_all_steps_is_read_in_time() -> None:
    size = 90
    elements = [
        initial(0, "S0"),
        *(step(number, f"S{number}", *range(size + number, size + 8000, size)) for number in range(1, size)),
    ]
    elements += [when(number, "go", number * 7 % size) for number in range(size, size + 8000) if number % size]
    timed(compact(*elements))


@pytest.mark.parametrize(
    "kind", ["selectionDivergence", "selectionConvergence", "simultaneousDivergence", "simultaneousConvergence"]
)
def test_long_chains_of_divergences_are_read_or_refused_in_time(kind: str) -> None:
    chain = [element(kind, number, number - 1) for number in range(2, 12_000)]
    timed(compact(initial(0, "A"), when(1, "go", 0), *chain, step(12_000, "B", 11_999)))
    timed(compact(initial(1, "A"), *chain, when(12_000, "go", 11_999), step(12_001, "B", 12_000)))


def test_long_names_and_texts_do_not_multiply() -> None:
    long = "n" * 900_000
    faulty = [when(number, "", 1) for number in range(2, 10_000)]
    imported = timed(compact(initial(1, long), *faulty))
    assert sum(len(fault.stated("en")) for fault in imported.faults) < 5_000_000
    named = f'<transition name="T"><body>{drawn.st("a AND " * 100_000 + "a")}</body></transition>'
    references = [drawn.transition(number, 1, condition='<reference name="T"/>') for number in range(2, 6_000)]
    assert timed(chart(initial(1, "A"), *references, step(9_000, "B", *range(2, 6_000)), transitions=named)).faults


def test_a_fault_of_the_recipe_has_the_place_of_its_element() -> None:
    """A dead end in a parallel path, a loop without time and a reset of nothing are found by the check of recipes."""
    paths = [fork(3, 2), step(4, "B", 3), step(5, "C", 3), when(6, "x", 4), step(7, "Stuck", 6), meet(8, 4, 5)]
    stuck = chart(initial(1, "A"), when(2, "go", 1), *paths, when(9, "y", 8), step(10, "D", 9))
    assert [fault.split(":")[0] for fault in faults_of(stuck)] == ["localId 2, line 6"]
    ends = [fork(3, 2), step(4, "B", 3), step(5, "C", 3), when(6, "x", 4), step(7, "E", 6), meet(8, 7, 5)]
    more = [when(11, "z", 4), step(12, "Stuck", 11)]
    stuck = chart(initial(1, "A"), when(2, "go", 1), *ends, when(9, "y", 8), step(10, "D", 9), *more)
    assert [fault.split(":")[0] for fault in faults_of(stuck)] == ["localId 12, Stuck, line 16"]
    loop = chart(initial(1, "A"), when(2, "TRUE", 1), step(3, "B", 2), when(4, "TRUE", 3), drawn.jump(5, "A", 4))
    assert [fault.split(":")[0] for fault in faults_of(loop)] == ["localId 1, A, line 5"]


def test_empty_and_broken_charts_are_faults() -> None:
    for data in (chart(), project(), b"", chart(fork(1), meet(2), choice(3), join(4)), chart(step(1, "A"))):
        assert import_plcopen(data).faults


KINDS = """step transition jumpStep selectionDivergence selectionConvergence simultaneousDivergence
simultaneousConvergence actionBlock inVariable macroStep comment"""
ELEMENTS = st.sampled_from(KINDS.split())


@given(st.lists(st.tuples(ELEMENTS, st.lists(st.integers(0, 9), max_size=3), st.sampled_from("ABC")), max_size=10))
@pytest.mark.hypothesis
def test_any_graph_is_a_sound_recipe_or_has_faults(elements: list[tuple[str, list[int], str]]) -> None:
    drawn_elements = [initial(0, "Init")]
    for number, (kind, after, name) in enumerate(elements, 1):
        drawn_elements.append(element(kind, number, *after, name=f"{name}{number}", targetName="Init"))
    imported = import_plcopen(chart(*drawn_elements))
    assert (imported.recipe is None) == bool(imported.faults)
    if imported.recipe is not None:
        assert isinstance(compile_recipe(imported.recipe), Net)


@given(st.binary(max_size=40), st.integers(0, len(PRESS)))
@pytest.mark.hypothesis
def test_a_damaged_file_never_raises(damage: bytes, place: int) -> None:
    imported = import_plcopen(PRESS[:place] + damage + PRESS[place + len(damage) :])
    assert (imported.recipe is None) == bool(imported.faults)
