"""A run is stored as small fields and read back as it was."""

import json

import msgspec
import pytest

from edge.sfc.association_key import parse_association_key as key
from edge.sfc.run import (
    ActionState,
    Run,
    StepState,
    changed_fields,
    decode,
    encode,
    is_outstanding,
    waits,
)
from edge.sfc.signal import Abort, Event, Pause, Start
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
    kept = driven.run
    started = Driven(net_of(TWO), start=False)
    started.run = kept
    started.signal(Start(), 1)
    assert changed_fields(kept, started.run)[1] == ("early:1",)


def test_a_command_is_outstanding_until_it_is_answered_or_stopped() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))))
    assert is_outstanding(driven.run, "J1/R1/a/1")
    driven.answer("a", 1)
    assert not is_outstanding(driven.run, "J1/R1/a/1")
    assert is_outstanding(driven.run, "J1/R1/b/1")
    driven.signal(Abort(), 2)
    assert not is_outstanding(driven.run, "J1/R1/b/1")


def test_the_reset_sent_at_abort_is_outstanding() -> None:
    driven = Driven(net_of(chain("A B C", action("s", "A", "S"), action("b", "B"), action("s", "C", "R"))))
    driven.answer("s", 1)
    driven.signal(Abort(), 2)
    assert driven.sent == ["stop J1/R1/b/1", "reset J1/R1/s/1/reset"]
    assert is_outstanding(driven.run, "J1/R1/s/1/reset")


def test_waits_have_the_start_time_of_each_awaited_type() -> None:
    driven = Driven(net_of(TWO))
    assert waits(driven.run) == {"part": 0}
    driven.signal(Abort(), 5)
    assert waits(driven.run) == {}


@pytest.mark.parametrize(
    ("state", "now", "t"),
    [
        (StepState(active=True, activated_at=1000), 3500, 2500),
        (StepState(active=True, activated_at=1000, held_ms=500), 3500, 2000),
        (StepState(active=True, activated_at=1000), 500, 0),
        (StepState(activated_at=1000, elapsed_ms=700), 9000, 700),
        (StepState(), 9000, 0),
    ],
)
def test_t_runs_while_the_step_is_active_and_keeps_its_value_afterwards(state: StepState, now: int, t: int) -> None:
    assert state.t(now) == t


def test_action_states_have_their_stable_log_names() -> None:
    assert [state.value for state in ActionState] == [
        "pending",
        "dispatched",
        "waiting",
        "completed",
        "failed",
        "timed_out",
        "stopped",
        "unknown",
    ]
