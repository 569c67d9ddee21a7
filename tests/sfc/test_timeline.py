"""Timelines: spans of steps, actions and pauses from the records of a run."""

from edge.sfc.association_key import AssociationKey
from edge.sfc.changes import ActionChange, Changes
from edge.sfc.history import DecisionRecord, read_record
from edge.sfc.run import ActionState, new_run
from edge.sfc.signal import Answer, Pause, Resolution, Resolve, Resume, Signal, Start, Tick, Unknown
from edge.sfc.timeline import timeline
from tests.sfc.recipes import net_of
from tests.sfc.test_history import LINE, played


def test_timeline_shows_spans_of_steps_actions_and_pauses() -> None:
    net = net_of(LINE)
    signals: list[tuple[Signal, int]] = [
        (Start(), 100),
        (Unknown("J1/R1/one/1", "away"), 150),
        (Resolve("one", Resolution.REPEAT, None, "seen", "anna"), 160),
        (Pause(), 170),
        (Resume(), 180),
        (Answer("J1/R1/one/2", ok=True), 200),
    ]
    run, stored = played(net, new_run("J1", "s", "R1", {}), signals)
    found = timeline([read_record(net, run, stored_decision) for stored_decision in stored])
    assert (found.begin, found.end) == (100, 200)
    assert [(step.step, step.begin, step.end) for step in found.steps] == [("A", 100, 200), ("B", 200, None)]
    assert [(action.action, action.begin, action.end, action.state) for action in found.actions] == [
        ("one", 100, 160, ActionState.UNKNOWN),
        ("one", 160, 200, ActionState.COMPLETED),
        ("two", 200, None, ActionState.DISPATCHED),
    ]
    assert [(pause.begin, pause.end) for pause in found.pauses] == [(170, 180)]


def test_span_of_a_command_left_behind_lasts_until_its_end() -> None:
    key = AssociationKey("one", "A")
    changes = [
        (0, (ActionChange(key, ActionState.DISPATCHED),)),
        (10, (ActionChange(key.left_behind(1), ActionState.DISPATCHED), ActionChange(key, ActionState.DISPATCHED))),
        (20, (ActionChange(key.left_behind(1), ActionState.FAILED),)),
    ]
    records = [DecisionRecord(number, at, Tick(), Changes(change)) for number, (at, change) in enumerate(changes, 1)]
    found = timeline(records)
    assert [(action.begin, action.end, action.state) for action in found.actions] == [
        (0, 20, ActionState.FAILED),
        (10, None, ActionState.DISPATCHED),
    ]
