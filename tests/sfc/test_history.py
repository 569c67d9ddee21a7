"""Records of decisions: what is written is read again, and a replay of the signals decides the same."""

import re
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from edge.sfc.advance import advance
from edge.sfc.history import (
    ActionChange,
    Changes,
    CommandChange,
    DecisionRecord,
    StoredDecision,
    changes_of,
    decode_changes,
    first_completed,
    read_record,
    record_decision,
)
from edge.sfc.identifiers import AssociationKey
from edge.sfc.replay import differing_fields, replay
from edge.sfc.run import ActionState, Run, new_run
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    Begun,
    Event,
    Late,
    Pause,
    Phase,
    Resolution,
    Resolve,
    Resume,
    SecondPerson,
    Signal,
    Start,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)
from edge.store.connection import pack_command
from edge.store.keys import Keys
from edge.store.runs import append_decision
from tests.sfc.charts import DAY, recipes
from tests.sfc.recipes import action, chain, net_of, recipe, transition
from tests.sfc.test_advance_properties import MANY, Day, fresh, play


def played(net: Any, run: Run, signals: list[tuple[Signal, int]]) -> tuple[Run, list[StoredDecision]]:
    """Return the run after the signals, all of which must change it, and the records of the decisions."""
    stored_decisions = []
    for number, (signal, at) in enumerate(signals, 1):
        advanced = advance(net, run, signal, at)
        assert isinstance(advanced, Advanced), advanced
        stored_decisions.append(record_decision(net, run, signal, advanced, number, at))
        run = advanced.run
    return run, stored_decisions


LINE = chain("A B C", action("one", "A"), action("two", "B"))


@MANY
@given(recipes(), DAY)
def test_records_replay_a_run_exactly(document: dict[str, Any], day: Day) -> None:
    net, run = net_of(document), fresh()
    stored_decisions = []
    for number, (before, signal, now, advanced) in enumerate(play(net, run, day), 1):
        assert before.started_at is not None or number == 1
        stored_decisions.append(record_decision(net, before, signal, advanced, number, now))
        record = read_record(net, advanced.run, stored_decisions[-1])
        # Whether an event named the job decides only about one that no action waits for.
        read = record.signal
        if isinstance(read, Event) and isinstance(signal, Event):
            read = replace(read, named=signal.named)
        assert (read, record.changes, record.is_whole) == (signal, changes_of(net, before, advanced), True)
        run = advanced.run
    repeated = replay(net, run, [read_record(net, run, stored_decision) for stored_decision in stored_decisions])
    assert repeated.differences == ()
    assert differing_fields(decode(encode(run)), repeated.run) == ()


@pytest.mark.parametrize(
    "signal",
    [
        Start(),
        Answer("J1/R1/one/1", ok=True),
        Answer("J1/R1/one/1", ok=True, data={"torque": 85.0}),
        Answer("J1/R1/one/1", ok=False),
        Answer("J1/R1/one/12/reset", ok=False, data=[1], error="x"),
        Unknown("J1/R1/one/1", "away"),
        Begun("J1/R1/one/1", "gateway"),
        Resolve("one", Resolution.DONE, {"torque": 1}, "seen", "anna"),
        Resolve("one", Resolution.REPEAT),
        Resolve("one", Resolution.FAILED, None, "seen", "anna", SecondPerson(600_000, has_login=False)),
        Withdrawn("J1/R1/one/1", "op is not connected"),
        Withdrawn("J1/R1/one/1"),
        Late("J1/R1/one/1", None, "x"),
        Late("J1/R1/one/1", 5),
        Event("scan", {"code": "é"}, "e1", named=True),
        Event("scan", None, "", named=False),
        Tick(),
        Pause(),
        Resume(),
        Abort(),
        Abort("enough"),
        Stop("enough"),
    ],
    ids=str,
)
def test_signal_is_read_as_it_was_recorded(signal: Signal) -> None:
    net = net_of(LINE)
    run = new_run("J1", "station-1", "R1", {})
    stored_decision = record_decision(net, run, signal, Advanced(run, (), ()), 7, 1234)
    assert read_record(net, run, stored_decision) == DecisionRecord(7, 1234, signal, Changes())


def test_members_of_a_recorded_result_keep_their_order() -> None:
    net = net_of(LINE)
    run = new_run("J1", "s", "R1", {})
    late = Late("J1/R1/one/1", {"torque": 85.0, "angle": 31})
    signal = read_record(net, run, record_decision(net, run, late, Advanced(run, (), ()), 7, 1234)).signal
    assert isinstance(signal, Late)
    # The run is stored as text: another order would be another run.
    assert list(signal.data) == ["torque", "angle"]


def test_record_refers_to_changes_by_recipe_index() -> None:
    net = net_of(LINE)
    run, stored_decisions = played(
        net, new_run("J1", "s", "R1", {}), [(Start(), 5), (Answer("J1/R1/one/1", ok=True), 9)]
    )
    assert [(stored_decision.name, stored_decision.text) for stored_decision in stored_decisions] == [
        ("start", '[[0,"S"],[0,1]]'),
        ("ok", '[[0,"c",1,"S"],[0,0,1,1]]'),
    ]
    keys = list(net.actions)
    expected = Changes(
        (ActionChange(keys[0], ActionState.COMPLETED), ActionChange(keys[1], ActionState.DISPATCHED)),
        (CommandChange(Phase.START, "B", "two"),),
        (("A", False), ("B", True)),
    )
    assert read_record(net, run, stored_decisions[1]).changes == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[[]",
            "[[],[]",
            "[[],{}]",
            '[[0,"z"],[]]',
            '[[9,"d"],[]]',
            '[[-1,"d"],[]]',
            "[[0],[]]",
            "[[],[0]]",
            "[[],[-1,1]]",
        ),
        *("{", "0z", "9d", "+0x", "0c[", "0c{}", "x", ">0c", "0c>1S", "0c>"),
    ],
)
def test_damaged_record_is_refused_with_its_number(text: str) -> None:
    net = net_of(LINE)
    with pytest.raises(ValueError, match="decision 3: "):
        read_record(net, new_run("J1", "s", "R1", {}), StoredDecision(3, 0, "tick", text))


def test_result_is_read_from_its_own_attempt() -> None:
    net = net_of(chain("A B", action("one", "A"), action("two", "B")))
    signals: list[tuple[Signal, int]] = [
        (Start(), 0),
        (Unknown("J1/R1/one/1", "away"), 1),
        (Resolve("one", Resolution.REPEAT, None, "seen", "anna"), 2),
        (Answer("J1/R1/one/2", ok=True, data={"torque": 5}), 3),
    ]
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), signals)
    assert (stored_decisions[3].name, stored_decisions[3].text) == ("ok", '[[0,"c",1,"S"],[0,0,1,1],[2]]')
    assert read_record(net, run, stored_decisions[3]).signal == signals[3][0]


def test_record_without_its_result_is_incomplete() -> None:
    net = net_of(LINE)
    run, stored_decisions = played(
        net, new_run("J1", "s", "R1", {}), [(Start(), 5), (Answer("J1/R1/one/1", ok=True, data=4), 9)]
    )
    record = read_record(net, msgspec.structs.replace(run, associations={}), stored_decisions[1])
    assert (record.signal, record.is_whole) == (Answer("J1/R1/one/1", ok=True), False)


def test_result_of_an_earlier_attempt_is_not_taken_for_the_latest() -> None:
    loop = recipe("A B", [transition("A", "B"), transition("B", "A")], [action("one", "A"), action("two", "B")])
    net = net_of(loop)
    signals: list[tuple[Signal, int]] = [(Start(), 0)]
    for attempt, (first, second) in enumerate([(1, 2), (3, 4)], 1):
        signals.append((Answer(f"J1/R1/one/{attempt}", ok=True, data={"torque": first}), attempt * 10))
        signals.append((Answer(f"J1/R1/two/{attempt}", ok=True, data={"angle": second}), attempt * 10 + 1))
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), signals)
    assert [read_record(net, run, stored_decision).signal for stored_decision in stored_decisions[1:]] == [
        signal for signal, _ in signals[1:]
    ]


def test_first_completed_action_is_named_by_its_latest_activation() -> None:
    left, second = AssociationKey("one", "A", 1, 3), AssociationKey("two", "B")
    changes = (ActionChange(second, ActionState.DISPATCHED), ActionChange(left, ActionState.COMPLETED))
    assert first_completed(changes) == AssociationKey("one", "A")
    assert first_completed(changes[:1]) is None


def test_reference_page_explains_every_code_of_a_history_record() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "redis.md"
    table = page.read_text(encoding="utf-8").partition("| action | codes |")[2].partition("\n\n")[0]
    codes = re.findall(r"`(\w)`", table)
    net = net_of(chain("A B", action("one", "A")))
    read = [decode_changes(net, [0, code], []) for code in codes]
    assert {changes.actions[0].state for changes in read if changes.actions} == {*ActionState, None}
    assert {changes.commands[0].phase for changes in read if changes.commands} == set(Phase)
    assert len(codes) == len(set(codes)) == len(set(read))


def test_record_of_a_usual_step_takes_at_most_145_bytes() -> None:
    names = [f"S{number}" for number in range(101)]
    actions = [action(f"act{number}", name) for number, name in enumerate(names[:-1])]
    net = net_of(chain(" ".join(names), *actions))
    job = str(uuid.UUID(int=7))
    run, stored_decisions = new_run(job, "station-1", "R1", {}), []
    signals: list[Signal] = [Start(), *(Answer(f"{job}/R1/act{n}/1", ok=True, data={"n": n}) for n in range(100))]
    for number, signal in enumerate(signals, 1):
        advanced = advance(net, run, signal, number * 60_000)
        assert isinstance(advanced, Advanced), advanced
        stored_decisions.append(record_decision(net, run, signal, advanced, number, number * 60_000))
        run = advanced.run
    written = [
        append_decision(Keys("microdcs-edge"), job, record, 60_000, 10_000).operations for record in stored_decisions
    ]
    sizes = [len(pack_command(command)) for (command,) in written[1:-1]]
    assert max(sizes) <= 145
