"""Properties of every valid recipe, for any order of signals."""

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.model.recipe import Intervention, Qualifier
from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.intervention import held_failures
from edge.sfc.net import QUALIFIER_RULES, Net, request_of
from edge.sfc.run import ActionState, Outcome, Run, find_command, is_outstanding, new_run, waits
from edge.sfc.run_fields import changed_fields, decode, encode
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    CommandRequest,
    Event,
    Intervene,
    Pause,
    Phase,
    Resume,
    SecondPerson,
    Signal,
    Start,
    Stop,
    Tick,
)
from edge.sfc.view import next_deadline
from edge.sfc.waiting import explain_waiting
from tests.examples import examples
from tests.sfc.charts import DAY, recipes

Day = list[tuple[str, int, int]]
MANY = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


def net_of(recipe: dict[str, Any]) -> Net:
    net = compile_recipe(recipe)
    assert isinstance(net, Net), net.faults
    return net


def fresh() -> Run:
    return new_run("job/1", "station-1", "run", {"torque": 85})


class Plant:
    """Turns the words of a day into signals: it remembers the commands it was sent."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.sent: list[CommandRequest] = []
        self.events = 0

    def signal(self, word: str, which: int, run: Run) -> Signal:
        open_commands = [
            command_request for command_request in self.sent if is_outstanding(run, command_request.command_id)
        ]
        match word:
            case "answer" | "fail" if open_commands:
                command = open_commands[which % len(open_commands)].command_id
                return Answer(command, ok=word == "answer", data={"n": which}, error="broken")
            case "again" if self.sent:
                return Answer(self.sent[which % len(self.sent)].command_id, ok=True, data={"n": which})
            case "foreign":
                return Answer(
                    ["", "job%2F1/run/x/1", "job%2F1/run/a0/99", "a/b/c/1", "%/%%/%zz/1/reset"][which % 5], ok=True
                )
            case "event" | "named":
                self.events += 1
                return Event(f"event{which % 4}", {"n": which}, f"id{self.events}", named=word == "named")
            case "pause":
                return Pause()
            case "resume":
                return Resume()
            case "retry" | "skip" | "force" | "complete" | "second" if run.active:
                return self.intervention(word, which, run)
            case _:
                return Tick()

    def intervention(self, word: str, which: int, run: Run) -> Intervene:
        steps, actions = sorted(run.active), sorted({key.action for key in run.associations})
        step = steps[which % len(steps)]
        action = actions[which % len(actions)] if actions else "none"
        targets = [text for transition in self.net.steps[step].outgoing for text in transition.targets]
        by = f"person {which}"
        match word:
            case "force":
                target = targets[which % len(targets)] if targets else step
                return Intervene(Intervention.FORCE, step=step, target=target, by=by)
            case "complete":
                return Intervene(Intervention.COMPLETE, step=step, by=by)
            case "second":
                return Intervene(Intervention.SKIP, action, data={"n": 1}, by=by, second=SecondPerson(60_000))
            case _:
                return Intervene(Intervention(word), action, data={"n": which}, by=by)


def play(net: Net, run: Run, day: Day, *, restarts: bool = False) -> Iterator[tuple[Run, Signal, int, Advanced]]:
    """Play a day; yields each change with the run before it."""
    plant = Plant(net)
    now = 1_000_000
    for word, which, pause in [("start", 0, 0), *day]:
        now += pause
        signal: Signal = Start() if word == "start" else plant.signal(word, which, run)
        if restarts:
            run = decode(encode(run))
        advanced = advance(net, run, signal, now)
        if isinstance(advanced, Advanced):
            plant.sent += [request for request in advanced.requests if request.phase is not Phase.STOP]
            yield run, signal, now, advanced
            run = advanced.run


def drive(net: Net, run: Run, now: int, *, good: bool = True) -> Run:
    """Answer every command and pass time until nothing more happens."""
    sent: list[str] = []
    for _ in range(3000):
        if run.ended:
            break
        commands = sorted(
            {
                run.associations[key].command_id
                for key in run.open
                if is_outstanding(run, run.associations[key].command_id)
            }
        )
        waiting, deadline = waits(run), next_deadline(net, run)
        if commands:
            signal: Signal = Answer(commands[0], ok=good, data={"n": 1})
        elif waiting:
            sent.append("e")
            signal = Event(min(waiting), {"n": 1}, f"drive{len(sent)}", named=False)
        elif deadline is not None:
            now, signal = max(now, deadline), Tick()
        elif failures := held_failures(net, run):
            signal = Intervene(Intervention.SKIP, failures[0].action, failures[0].step, by="anna")
        else:
            break
        advanced = advance(net, run, signal, now)
        assert isinstance(advanced, Advanced), (signal, advanced)
        run = advanced.run
    return run


def tokens(net: Net, run: Run) -> int:
    """Count where the activity is; every path of an active simultaneous branch has exactly one."""
    branches = {branch.name: branch for branch in net.recipe.branches}
    nested = {name for branch in net.recipe.branches for path in branch.branches for name in path}

    def of(name: str) -> int:
        branch = branches.get(name)
        if branch is None:
            return int(name in run.active)
        paths = [sum(of(text) for text in path) for path in branch.branches]
        assert max(paths) <= 1
        if branch.type == "simultaneous":
            assert len(set(paths)) == 1, f"{name} has {paths}"
            return paths[0]
        return sum(paths)

    names = [*(step.name for step in net.recipe.steps), *branches]
    return sum(of(name) for name in names if name not in nested)


@MANY
@given(recipes())
def test_every_generated_recipe_completes_when_all_equipment_answers(recipe: dict[str, Any]) -> None:
    net = net_of(recipe)
    advanced = advance(net, fresh(), Start(), 0)
    assert isinstance(advanced, Advanced)
    assert drive(net, advanced.run, 0).outcome is Outcome.COMPLETED


@MANY
@given(recipes(), DAY)
def test_active_steps_are_neither_lost_nor_duplicated(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    active: set[str] = set()
    for _, _, _, advanced in play(net, fresh(), day):
        for change in advanced.steps:
            assert (change.step in active) is not change.active, "a step becomes active twice, or is left twice"
            (active.add if change.active else active.discard)(change.step)
        assert active == advanced.run.active
        if advanced.run.started_at is not None:
            assert tokens(net, advanced.run) == 1


@MANY
@given(recipes(), DAY)
def test_storing_and_loading_between_any_two_signals_changes_nothing(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    straight = [(encode(advanced.run), advanced.requests, advanced.steps) for *_, advanced in play(net, fresh(), day)]
    restarted = [
        (encode(advanced.run), advanced.requests, advanced.steps)
        for *_, advanced in play(net, fresh(), day, restarts=True)
    ]
    assert straight == restarted


@MANY
@given(recipes(), DAY)
def test_same_signals_produce_the_same_run(recipe: dict[str, Any], day: Day) -> None:
    first = [(advanced.run, advanced.requests) for *_, advanced in play(net_of(recipe), fresh(), day)]
    net = net_of(recipe)
    again = compile_recipe(_decoded(net.source))
    assert isinstance(again, Net)
    assert [(advanced.run, advanced.requests) for *_, advanced in play(again, fresh(), day)] == first


def _decoded(source: str) -> object:
    import json

    return json.loads(source)


@MANY
@given(recipes(), DAY)
def test_the_changed_fields_turn_the_stored_run_into_the_next(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    stored = encode(fresh())
    start = fresh()
    for before, _, _, advanced in play(net, start, day):
        written, removed = changed_fields(before, advanced.run)
        stored.update(written)
        for name in removed:
            del stored[name]
        assert stored == encode(advanced.run)
        whole, gone = changed_fields(start, advanced.run)
        base = {name: text for name, text in encode(start).items() if name not in gone}
        assert base | whole == encode(advanced.run)


@MANY
@given(recipes(), DAY, st.integers(0, 1))
def test_tick_before_the_next_deadline_changes_no_state(recipe: dict[str, Any], day: Day, early: int) -> None:
    net = net_of(recipe)
    for _, _, now, advanced in play(net, fresh(), day):
        run, deadline = advanced.run, next_deadline(net, advanced.run)
        if run.ended or run.paused:
            assert deadline is None
            continue
        sooner = now + 100_000_000 if deadline is None else deadline - 1 - early
        if sooner >= now:
            ticked = advance(net, run, Tick(), sooner)
            assert isinstance(ticked, Advanced)
            assert (ticked.requests, ticked.steps, encode(ticked.run)) == ((), (), encode(run))


@MANY
@given(recipes(), DAY, st.sampled_from([Abort("e-stop"), Stop("shift ends")]))
def test_ending_early_stops_every_command_and_resets_every_stored_action(
    recipe: dict[str, Any], day: Day, ending: Abort | Stop
) -> None:
    net = net_of(recipe)
    run, now = fresh(), 1_000_000
    for _, _, now, advanced in play(net, run, day):  # noqa: B007 - the last one counts
        run = advanced.run
    ended = advance(net, run, ending, now)
    if run.ended:
        assert not isinstance(ended, Advanced)
        return
    assert isinstance(ended, Advanced)
    stopped = {request.command_id for request in ended.requests if request.phase is Phase.STOP}
    reset = {request.action for request in ended.requests if request.phase is Phase.RESET}
    for key in run.open:
        association = run.associations[key]
        if association.state is ActionState.DISPATCHED and not association.reset:
            assert association.command_id in stopped
    for name, key in run.stored.items():
        association, rule = run.associations[key], net.actions[key].rule
        over = (
            rule.ends and association.due is None and association.state in {ActionState.COMPLETED, ActionState.STOPPED}
        )
        if name in net.resetting and association.state is not ActionState.PENDING and not over:
            assert name in reset
    assert ended.run.stored == {}
    assert waits(ended.run) == {}
    assert next_deadline(net, ended.run) is None


@MANY
@given(recipe=recipes(), day=DAY, good=st.booleans())
def test_at_the_end_every_command_is_answered_stopped_or_timed_out(
    recipe: dict[str, Any], day: Day, *, good: bool
) -> None:
    """Only what a normal end leaves stays open: stored starts, and pulses and resets that no step waited for."""
    net = net_of(recipe)
    run, now = fresh(), 1_000_000
    for _, _, now, advanced in play(net, run, day):  # noqa: B007 - the last one counts
        run = advanced.run
    resumed = advance(net, run, Resume(), now)
    if isinstance(resumed, Advanced):
        run = resumed.run
    run = drive(net, run, now, good=good)
    assert run.ended
    for key in run.open:
        action = net.actions[key.latest]
        left = run.associations[key].reset or (
            run.outcome is Outcome.COMPLETED and (action.rule.stored or action.qualifier in {Qualifier.P, Qualifier.P1})
        )
        assert left, key


@MANY
@given(recipes(), DAY)
def test_request_can_be_rebuilt_from_the_net_and_the_run(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    for _, _, _, advanced in play(net, fresh(), day):
        for request in advanced.requests:
            association = find_command(advanced.run, request.command_id)
            if association is not None:
                assert request_of(net, advanced.run, request.phase, association, request.step) == request
        ids = [(request.phase, request.command_id) for request in advanced.requests]
        assert len(ids) == len(set(ids))


@MANY
@given(recipes(), DAY)
def test_waiting_run_always_has_a_reason(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    for _, _, now, advanced in play(net, fresh(), day):
        reasons = explain_waiting(net, advanced.run, now)
        assert reasons
        assert all(str(reason) for reason in reasons)


def test_the_rules_cover_every_qualifier() -> None:
    assert set(QUALIFIER_RULES) == set(Qualifier)
