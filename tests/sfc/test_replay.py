"""The records of a run replay to the same decisions; another recipe shows the first difference."""

from edge.sfc.advance import advance
from edge.sfc.history import ActionChange, Changes, DecisionRecord, read_record
from edge.sfc.identifiers import AssociationKey
from edge.sfc.replay import differing_fields, replay, starts_at_the_beginning, timeline
from edge.sfc.run import ActionState, KeptEvent, new_run
from edge.sfc.signal import Advanced, Answer, Event, Pause, Resolution, Resolve, Resume, Signal, Start, Tick, Unknown
from tests.sfc.recipes import action, chain, net_of, recipe, transition, wait
from tests.sfc.test_history import LINE, played


def test_events_before_the_start_are_recorded_with_it() -> None:
    net = net_of(chain("A B", wait("scan", "A"), action("two", "B")))
    early = advance(net, new_run("J1", "s", "R1", {}), Event("scan.v1", {"code": 4}, "e1", named=True), 1)
    assert isinstance(early, Advanced)
    run, stored_decisions = played(net, early.run, [(Start(), 5)])
    records = [read_record(net, run, stored_decision) for stored_decision in stored_decisions]
    assert records[0].early == (KeptEvent("scan.v1", "e1", {"code": 4}),)
    repeated = replay(net, run, records)
    assert repeated.differences == ()
    assert differing_fields(run, repeated.run) == ()


def test_replay_with_another_recipe_reports_the_first_difference() -> None:
    net = net_of(LINE)
    signals: list[tuple[Signal, int]] = [
        (Start(), 0),
        (Answer("J1/R1/one/1", ok=True, data={"torque": 5}), 10),
        (Answer("J1/R1/two/1", ok=True), 20),
    ]
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), signals)
    records = [read_record(net, run, stored_decision) for stored_decision in stored_decisions]
    transitions = [transition("A", "B", "one.torque > 8"), transition("B", "C")]
    other = net_of(recipe("A B C", transitions, [action("one", "A"), action("two", "B")]))
    repeated = replay(other, run, records)
    assert [difference.record.number for difference in repeated.differences] == [2, 3]
    assert repeated.differences[0].repeated.steps == ()
    assert "no such command" in repeated.differences[1].ignored
    assert not repeated.run.ended


def test_records_without_the_start_cannot_be_replayed() -> None:
    assert not starts_at_the_beginning([])
    assert not starts_at_the_beginning([DecisionRecord(9, 0, Tick(), Changes())])
    assert starts_at_the_beginning([DecisionRecord(1, 0, Start(), Changes())])


def test_different_final_state_is_reported_by_its_fields() -> None:
    net = net_of(LINE)
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), [(Start(), 0)])
    repeated = replay(net, run, [read_record(net, run, stored_decision) for stored_decision in stored_decisions])
    later, _ = played(net, run, [(Answer("J1/R1/one/1", ok=True, data={"torque": 5}), 10)])
    fields = differing_fields(later, repeated.run)
    assert {"var:torque", "step:A", "step:B", "action:one@A"} <= set(fields)


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
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), signals)
    found = timeline([read_record(net, run, stored_decision) for stored_decision in stored_decisions])
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
