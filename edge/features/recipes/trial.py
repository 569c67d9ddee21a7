"""Tries a recipe by hand in virtual time: up to the first command or event without a decision.

The decisions make a script of `edge simulate`: all that happens before the first open question is settled by them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from edge.app.features import Simulate, result_members, simulation
from edge.features.recipes.recipe_tests import MOST_CHANGES, endless
from edge.features.recipes.trial_fields import TrialField, parameter_fields, result_fields
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text, join_texts
from edge.model.recipe import Action, Interaction, Recipe
from edge.sfc.signal import kind_text

_MOST_FRAMES: Final = 2000
_MOST_REPLIES: Final = 500
_LATE_S: Final = 1.0
"""How long after its time limit an answer comes late."""

Kind: TypeAlias = Literal["command", "event"]
Result: TypeAlias = Literal["ok", "failed", "late", "unknown", "none"]
_Seconds = Annotated[float, Meta(ge=0, le=1_000_000)]
_Id = Annotated[str, Meta(min_length=1, max_length=255)]


class TrialQuestion(Struct, frozen=True, kw_only=True):
    """What a trial does not know: the answer to a command, or whether an event comes.

    `nth` counts the commands of a type, and the times that a step has waited for an event, from 1. `at` is in seconds
    after the start; `timeout_seconds` is 0 without a limit.
    """

    kind: Kind
    type_id: str
    nth: int
    action: str
    step: str
    at: float
    attempt: int = 1
    timeout_seconds: float = 0
    fields: tuple[TrialField, ...] = ()
    """What conditions ask for in the result or in the data of the event."""


class TrialReply(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision about a question: it names `kind`, `type_id` and `nth`, and at an event `step` and `action`.

    `after` is in seconds after `at`. A `late` answer is an ok one second after the time limit. An event has the result
    `ok`, or `none` when it does not come.
    """

    kind: Kind
    type_id: _Id
    nth: Annotated[int, Meta(ge=1)]
    result: Result
    step: Annotated[str, Meta(max_length=255)] = ""
    action: Annotated[str, Meta(max_length=255)] = ""
    at: _Seconds = 0
    after: _Seconds = 1
    timeout_seconds: _Seconds = 0
    data: Any = None
    error: Annotated[str, Meta(max_length=1000)] = ""


_RESOLVE: Final = "resolve "
PersonAct: TypeAlias = Literal[
    "retry", "skip", "force", "complete", "abort", "resolve done", "resolve failed", "resolve repeat"
]


WITH_RESULT: Final[frozenset[PersonAct]] = frozenset({"skip", "resolve done"})
"""What a person does that may bring the result of an action."""


class TrialIntervention(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person does in a job, `after` seconds after `at`: an intervention, a decision about an unknown outcome.

    `abort` ends the job. It names an action, a step, or the step to leave and the `target` to enter. `data` is the
    result of an action that is skipped, or whose unknown outcome is decided as done.
    """

    kind: PersonAct
    action: Annotated[str, Meta(max_length=255)] = ""
    step: Annotated[str, Meta(max_length=255)] = ""
    target: Annotated[str, Meta(max_length=255)] = ""
    at: _Seconds = 0
    after: Annotated[float, Meta(ge=0.001, le=1_000_000)] = 1
    data: Any = None

    @property
    def instant(self) -> float:
        """When it happens, in whole milliseconds as the simulation counts."""
        return round((self.at + self.after) * 1000) / 1000

    @property
    def text(self) -> Text:
        """Return it for people."""
        subject: str | Text = " → ".join(name for name in (self.step, self.target) if name)
        if self.action:
            subject = Text.of("{action} of {step}", action=self.action, step=self.step) if self.step else self.action
        kind = Text.of("abort") if self.kind == "abort" else kind_text(self.kind)
        return join_texts(" ", [part for part in (kind, subject) if part != ""])

    def entry(self) -> dict[str, Any]:
        """Return it as an entry of the timeline of a script."""
        names = {"action": self.action, "step": self.step, "target": self.target}
        data = {} if self.data is None or self.kind not in WITH_RESULT else {"data": self.data}
        if self.kind == "abort":
            return {"at": self.instant, "operator": "abort"}
        if self.kind.startswith(_RESOLVE):
            resolution = self.kind.removeprefix(_RESOLVE)
            return {"at": self.instant, "resolve": {"action": self.action, "resolution": resolution, **data}}
        own = {name: value for name, value in names.items() if value}
        return {"at": self.instant, "intervene": {"kind": self.kind, **own, **data}}


class TrialDecisions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisions of a trial, in their order, and the parameters of its job order."""

    replies: Annotated[tuple[TrialReply, ...], Meta(max_length=_MOST_REPLIES)] = ()
    interventions: Annotated[tuple[TrialIntervention, ...], Meta(max_length=_MOST_REPLIES)] = ()
    parameters: dict[str, Any] = {}


class TrialEvent(Struct, frozen=True, kw_only=True):
    """One event of a trial, `at` seconds after its start, and the steps that are active after it.

    `kind` is `step`, `command`, `answer`, `event` or `person`.
    """

    at: float
    kind: str
    text: str
    active: tuple[str, ...]


class Trial(Struct, frozen=True, kw_only=True):
    """What happened so far; `questions` are open, without them the trial is over and has an `end`.

    With `truncated` there are only the newest of its many frames.
    `end` is `running` where the job waits, `waiting` says for what. `script` and `steps` make a test of the recipe.
    `interventions` are what a person could do now, `planned` what persons do later than the open questions.
    `parameters` are what conditions ask of the job order, `members` those of results that equipment knows. `results`
    are what conditions ask for in the result of each action that a person could skip or decide as done.
    """

    frames: tuple[TrialEvent, ...]
    questions: tuple[TrialQuestion, ...]
    end: str
    verdict: str
    error: str
    seconds: float | None
    waiting: tuple[str, ...]
    script: Mapping[str, Any]
    steps: tuple[str, ...]
    truncated: bool
    interventions: tuple[TrialIntervention, ...] = ()
    planned: tuple[str, ...] = ()
    parameters: tuple[TrialField, ...] = ()
    members: tuple[str, ...] = ()
    results: Mapping[str, tuple[TrialField, ...]] = {}


def tried(recipe: Recipe, data: object, decisions: TrialDecisions, language: str) -> Trial:
    """Return what happens in a recipe (also as decoded JSON) with some decisions. Raises Refused."""
    if (simulate := simulation()) is None:
        raise Refused("no_simulator", "this program cannot simulate recipes", "Install it with the simulator.")
    script = _script(decisions)
    trace = _trace(simulate, data, script)
    acts = _acts(trace, decisions.interventions)
    unanswered = list(_open(recipe, trace, decisions.replies))
    closed = [question for question in unanswered if _is_closed(question, trace, acts)]
    questions = sorted((item for item in unanswered if item not in closed), key=lambda question: question.at)
    until = questions[0].at if questions else float("inf")
    # What a person could do at the open questions: without them the trace says it already.
    now = _trace(simulate, data, {**script, "horizon": until}) if questions else trace
    frames = list(_frames(trace, decisions.replies, acts, until, language))
    is_over = not questions
    possible = tuple(_possible(now))
    return Trial(
        frames=tuple(frames[-_MOST_FRAMES:]),
        questions=tuple(
            replace(question, fields=result_fields(recipe, question.action))
            for question in questions
            if question.at == until
        ),
        end=trace["final"] if is_over else "",
        verdict=", ".join(dict.fromkeys(trace["verdict_by_job"].values())) if is_over else "",
        error=_error(trace, language) if is_over else "",
        seconds=trace["end"] if is_over else None,
        waiting=tuple(f"{item['step']}: {text}" for item in trace["waiting"] for text in item["waits_for"])
        if is_over
        else (),
        script=_with_closed(script, closed),
        steps=tuple(item["step"] for item in trace["steps"] if item["active"] and item["t"] <= until),
        truncated=len(frames) > _MOST_FRAMES,
        interventions=possible,
        planned=tuple(act.text.in_language(language) for act, _ in acts if act.instant > until),
        parameters=parameter_fields(recipe),
        members=tuple(sorted(result_members())),
        results={act.action: result_fields(recipe, act.action) for act in possible if act.kind in WITH_RESULT},
    )


def _trace(simulate: Simulate, data: object, script: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the trace of a script in which nothing answers by itself. Raises Refused."""
    try:
        trace = simulate(data, {"default": {"result": "none"}, **script, "most_changes": MOST_CHANGES})
    except EdgeError as error:
        raise Refused("invalid_script", error.text, "Undo the last answer.") from error
    if trace["final"] == "rejected_at_load":
        raise Refused("recipe", trace["error"], "Correct the draft first.")
    return trace


def _possible(trace: Mapping[str, Any]) -> Iterator[TrialIntervention]:
    """Yield what a person could do at the end of a trace; a job that has begun can always be aborted."""
    at = trace["until"]
    for item in trace["possible_interventions"]:
        names = {name: item[name] for name in ("action", "step", "target")}
        yield TrialIntervention(kind=item["kind"], at=at, **names)
    if trace["final"] == "running":
        yield TrialIntervention(kind="abort", at=at)


_Act: TypeAlias = tuple[TrialIntervention, str]
"""What a person did, and why it had no effect."""


def _acts(trace: Mapping[str, Any], interventions: Sequence[TrialIntervention]) -> Sequence[_Act]:
    """Return the acts of persons in their order, each with why it had no effect."""
    ignored = {_key_of(item, item["t"]): item["ignored"] for item in trace["interventions"]}
    acts = []
    for act in interventions:
        names = {"kind": act.kind, "action": act.action, "step": act.step, "target": act.target}
        acts.append((act, ignored.get(_key_of(names, act.instant), "")))
    return acts


def _key_of(names: Mapping[str, Any], at: float) -> tuple[Any, ...]:
    return at, names["kind"], names["action"], names["step"], names["target"]


def _is_closed(question: TrialQuestion, trace: Mapping[str, Any], acts: Sequence[_Act]) -> bool:
    """Return whether the act of a person has ended what a question asks for."""
    return any(question.at < act.instant and _closes(act, question, trace) for act, ignored in acts if not ignored)


def _closes(act: TrialIntervention, question: TrialQuestion, trace: Mapping[str, Any]) -> bool:
    if act.kind == "skip" and act.action == question.action:
        return not act.step or act.step == question.step or not question.step
    if question.kind == "command":
        return any(
            command["phase"] == "stop"
            and (command["t"], command["action"], command["attempt"])
            == (act.instant, question.action, question.attempt)
            for command in trace["commands"]
        )
    left = {item["step"] for item in trace["steps"] if item["t"] == act.instant and not item["active"]}
    return act.kind == "abort" or (act.kind in {"complete", "force"} and question.step in {act.step, *left})


def _with_closed(script: Mapping[str, Any], closed: Sequence[TrialQuestion]) -> Mapping[str, Any]:
    """Return a script that also leaves the commands without an answer that persons have ended."""
    commands = [question for question in closed if question.kind == "command"]
    rules = [{"type_id": item.type_id, "nth": item.nth, "result": "none"} for item in commands]
    return {**script, "equipment": [*script.get("equipment", ()), *rules]} if rules else script


def _error(trace: Mapping[str, Any], language: str) -> str:
    cut = endless(trace)
    return cut.in_language(language) if cut is not None else trace["error"] or ""


def _script(decisions: TrialDecisions) -> dict[str, Any]:
    """Return the script that makes the decisions; what it leaves out is ok, as in each script."""
    equipment, timeline = list[dict[str, Any]](), [act.entry() for act in decisions.interventions]
    for reply in decisions.replies:
        given = {"data": reply.data} if reply.data is not None else {}
        if reply.kind == "command":
            failed = {"error": reply.error} if reply.error and reply.result in {"failed", "unknown"} else {}
            result = "ok" if reply.result == "late" else reply.result
            rule = {"type_id": reply.type_id, "nth": reply.nth, "result": result, "after": _after(reply)}
            equipment.append(rule | given | failed)
        elif reply.result != "none":
            timeline.append({"at": reply.at + reply.after, "event": {"type_id": reply.type_id, **given}})
    jobs = [{"id": "J1", "at": 0, "parameters": decisions.parameters}] if decisions.parameters else []
    timeline.sort(key=lambda entry: entry["at"])
    script = {"jobs": jobs, "equipment": equipment, "timeline": timeline}
    return {name: entries for name, entries in script.items() if entries}


def _after(reply: TrialReply) -> float:
    return reply.timeout_seconds + _LATE_S if reply.result == "late" else reply.after


def _key(of: TrialQuestion | TrialReply) -> tuple[str, ...]:
    return of.kind, of.type_id, str(of.nth), *((of.step, of.action) if of.kind == "event" else ())


def _open(recipe: Recipe, trace: Mapping[str, Any], replies: Sequence[TrialReply]) -> Iterator[TrialQuestion]:
    """Yield the questions of a trace that have no decision."""
    decisions = {_key(reply): reply for reply in replies}
    by_name: dict[str, list[Action]] = {}
    for action in recipe.actions:
        by_name.setdefault(action.name, []).append(action)
    for nth, command in _commands(trace):
        actions = by_name.get(command["action"], [])
        question = TrialQuestion(
            kind="command",
            type_id=command["type_id"],
            nth=nth,
            action=command["action"],
            step=actions[0].step if len(actions) == 1 else "",
            at=command["t"],
            attempt=command["attempt"],
            timeout_seconds=max((action.timeout_seconds for action in actions), default=0),
        )
        if _key(question) not in decisions:
            yield question
    for questions in _waits(recipe, trace):
        yield from _undecided(questions, decisions)


def _undecided(
    questions: Sequence[TrialQuestion], decisions: Mapping[tuple[str, ...], TrialReply]
) -> Iterator[TrialQuestion]:
    """Yield the questions of one wait, one of each type: its first action takes the event, so that it is decided first.

    While an action waits for ever, none behind it gets an event of the type.
    """
    types = set[str]()
    for question in questions:
        if question.type_id in types:
            continue
        reply = decisions.get(_key(question))
        if reply is None:
            yield question
        if reply is None or (reply.result == "none" and not question.timeout_seconds):
            types.add(question.type_id)


def _commands(trace: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the commands that are answered, each with its number among those of its type."""
    received = Counter[str]()
    for command in trace["commands"]:
        if command["phase"] != "stop":
            received[command["type_id"]] += 1
            yield received[command["type_id"]], command


def _waits(recipe: Recipe, trace: Mapping[str, Any]) -> Iterator[Sequence[TrialQuestion]]:
    """Yield the events of each wait: a step that begins with such actions, and is not left at the same instant."""
    events: dict[str, list[Action]] = {}
    for action in recipe.actions:
        if action.interaction is Interaction.PULL_EVENT:
            events.setdefault(action.step, []).append(action)
    times = Counter[str]()
    changes: Sequence[Mapping[str, Any]] = trace["steps"]
    for item, until in zip(changes, _ends(changes), strict=True):
        step, at = item["step"], item["t"]
        if item["active"] and step in events:
            times[step] += 1
            # A step may be entered again at the instant at which it was left.
            if until == at:
                continue
            yield [
                TrialQuestion(
                    kind="event",
                    type_id=action.type_id,
                    nth=times[step],
                    action=action.name,
                    step=step,
                    at=at,
                    timeout_seconds=action.timeout_seconds,
                )
                for action in events[step]
            ]


def _ends(changes: Sequence[Mapping[str, Any]]) -> Sequence[float | None]:
    """Return for each change of a step the instant of its next one; None where there is none."""
    ends, following = list[float | None](), dict[str, float]()
    for item in reversed(changes):
        ends.append(following.get(item["step"]))
        following[item["step"]] = item["t"]
    return ends[::-1]


_Event: TypeAlias = tuple[float, int, str, Text, tuple[str, bool] | None]
"""An instant, the rank within it, the kind, the text, and the step that changes."""


def _frames(
    trace: Mapping[str, Any], replies: Sequence[TrialReply], acts: Sequence[_Act], until: float, language: str
) -> Iterator[TrialEvent]:
    active: dict[str, None] = {}
    for at, _, kind, text, change in sorted(_events(trace, replies, acts), key=lambda event: event[:2]):
        if at > until:
            return
        if change is not None:
            step, begins = change
            active.pop(step, None)
            active |= {step: None} if begins else {}
        yield TrialEvent(at=at, kind=kind, text=text.in_language(language), active=tuple(active))


def _events(trace: Mapping[str, Any], replies: Sequence[TrialReply], acts: Sequence[_Act]) -> Iterator[_Event]:
    ends = trace["end"]
    rules = {(reply.type_id, reply.nth): reply for reply in replies if reply.kind == "command"}
    for nth, command in _commands(trace):
        reply = rules.get((command["type_id"], nth))
        if reply is not None and reply.result != "none":
            at = command["t"] + _after(reply)
            if ends is None or at <= ends:
                yield at, 0, "answer", _answer_text(command["action"], reply.result), None
    for reply in replies:
        if reply.kind == "event" and reply.result != "none":
            yield reply.at + reply.after, 0, "event", Text.of("event {type}", type=reply.type_id), None
    for act, ignored in acts:
        text = Text.of("a person: {act}", act=act.text)
        if ignored:
            text = Text.of("a person: {act}, without effect: {reason}", act=act.text, reason=ignored)
        yield act.instant, 0, "person", text, None
    for item in trace["steps"]:
        text = Text.of("step {step} begins", step=item["step"])
        if not item["active"]:
            text = Text.of("step {step} is left", step=item["step"])
        yield item["t"], 1, "step", text, (item["step"], item["active"])
    for command in trace["commands"]:
        yield command["t"], 2, "command", _COMMANDS[command["phase"]](command), None


def _answer_text(action: str, result: Result) -> Text:
    match result:
        case "failed":
            return Text.of("{action} has failed", action=action)
        case "late":
            return Text.of("{action} answers too late", action=action)
        case "unknown":
            return Text.of("the outcome of {action} is unknown", action=action)
        case _:
            return Text.of("{action} is done", action=action)


_COMMANDS: Final = {
    "start": lambda command: Text.of(
        "{action} is commanded, attempt {attempt}", action=command["action"], attempt=command["attempt"]
    ),
    "stop": lambda command: Text.of("{action} is stopped", action=command["action"]),
    "reset": lambda command: Text.of("{action} is reset", action=command["action"]),
}
