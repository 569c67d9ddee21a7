"""A run is stored as small fields and read back as it was."""

import json
import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import Run
from edge.sfc.run_fields import changed_fields, decode, encode
from edge.sfc.signal import Event, Pause, Start
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition, wait

TWO = recipe(
    "I A B End",
    [transition("I", "par"), transition("par", "End")],
    [action("a", "A", "S"), wait("w", "B", type_id="part", timeout_seconds=0)],
    branch("par", "simultaneous", "A", "B"),
)


def test_stored_run_has_readable_fields() -> None:
    driven = Driven(net_of(TWO), {"torque": 85})
    driven.answer("a", 1500, {"ok": True})
    fields = {name: json.loads(text) for name, text in encode(driven.run).items()}
    assert fields == {
        "run": {"job_id": "J1", "scope": "station-1", "run_id": "R1", "parameters": {"torque": 85}},
        "state": {"started_at": 0},
        "step:I": [0, 1],
        "step:A": [0, 1, True],
        "step:B": [0, 1, True],
        "action:a@A": ["completed", 1, 0, 1500, {"ok": True}],
        "action:w@B": ["waiting", 1, 0, *[None] * 5, False, "part"],
        "stored:a": "a@A",
        "var:ok": True,
    }


@pytest.mark.untraced
def test_a_step_writes_only_what_it_changed() -> None:
    driven = Driven(
        net_of(chain(" ".join(f"S{n}" for n in range(500)), *(action(f"a{n}", f"S{n}") for n in range(500))))
    )
    sizes = []
    for number in range(499):
        before = driven.run
        driven.answer(f"a{number}", 100 * number, {"torque": 85.2})
        written, removed = changed_fields(before, driven.run)
        assert removed == ()
        sizes.append(sum(len(name) + len(text) for name, text in written.items()))
    assert max(sizes) < 260


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False)])
def test_equal_values_of_another_type_are_written(before: object, after: object) -> None:
    driven = Driven(net_of(TWO))
    old, new = (msgspec.structs.replace(driven.run, variables={"x": value}) for value in (before, after))
    assert changed_fields(old, new) == ({"var:x": json.dumps(after)}, ())


def test_names_of_any_kind_are_stored_and_read() -> None:
    names = ["a@b", "step:x", "größe/1", "#2 %"]
    data = recipe(
        "I",
        [transition("I", "par")],
        [action(name, name, "S") for name in names],
        {"name": "par", "type": "simultaneous", "branches": [[name] for name in names]},
    )
    data["steps"] += [{"name": name} for name in names]
    driven = Driven(net_of(data))
    read = decode(encode(driven.run))
    assert read.associations == driven.run.associations
    assert read.steps == driven.run.steps
    assert (read.active, read.open, read.stored) == (driven.run.active, driven.run.open, driven.run.stored)


def test_every_field_of_a_run_is_read_back() -> None:
    driven = Driven(net_of(TWO), {"p": [1, {"x": None}]})
    driven.signal(Event("part", {"n": 1}, "e1", named=False), 10)
    for number in range(12):
        driven.signal(Event("part", {"n": number}, f"k{number}", named=True), 20)
    driven.signal(Pause(), 30)
    driven.answer("a", 40, error="broken")
    read = decode({**encode(driven.run), "rev": "7", "_dataschema": "x", "recipe": "{}"})
    assert read.early == driven.run.early
    assert list(read.early) == list(range(1, 13))
    assert read.faults == (key("a@A"),)
    for name in set(Run.__struct_fields__) - {"revision", "touched", "tested_at"}:
        assert getattr(read, name) == getattr(driven.run, name), name


def test_instants_of_steps_and_actions_count_from_the_start_of_the_run() -> None:
    began = 1_700_000_000_000
    driven = Driven(net_of(TWO), start=False)
    driven.signal(Start(), began)
    before = driven.run
    driven.answer("a", began + 1500, {"ok": True})
    fields = encode(driven.run)
    assert fields["state"] == f'{{"started_at":{began}}}'
    assert fields["step:A"] == "[0,1,true]"
    assert fields["action:a@A"] == '["completed",1,0,1500,{"ok":true}]'
    read = decode(fields)
    assert (read.steps, read.associations) == (driven.run.steps, driven.run.associations)
    assert changed_fields(before, driven.run)[0].keys() == {"action:a@A", "var:ok"}
    # An instant before the start, as after a step of the clock, is read back, too.
    later = msgspec.structs.replace(driven.run, started_at=began + 60_000)
    assert decode(encode(later)).associations == driven.run.associations
    # What counts from another start is written again.
    assert changed_fields(driven.run, later)[0].keys() == {
        name for name in fields if name.startswith(("step:", "action:"))
    } | {"state"}


def test_obsolete_fields_are_removed() -> None:
    driven = Driven(net_of(TWO), start=False)
    driven.signal(Event("part", {"n": 1}, "e1", named=True), 0)
    run = driven.run
    started = Driven(net_of(TWO), start=False)
    started.run = run
    started.signal(Start(), 1)
    assert changed_fields(run, started.run)[1] == ("early:1",)


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(SCALARS, SCALARS)
@example(0.0, -0.0)
@example(1, 1.0)
@example(False, 0)
@example(math.pi, math.pi)
def test_variable_is_written_exactly_when_its_text_differs(before: object, after: object) -> None:
    driven = Driven(net_of(TWO))
    old = msgspec.structs.replace(driven.run, variables={"x": before})
    new = msgspec.structs.replace(old, variables={"x": after}, revision=old.revision + 1, touched={("var", "x")})
    texts = [msgspec.json.encode(value).decode() for value in (before, after)]
    assert changed_fields(old, new) == ({"var:x": texts[1]} if texts[0] != texts[1] else {}, ())
