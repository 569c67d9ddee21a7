"""Tries a recipe by hand in virtual time: up to the first command or event without a decision.

The decisions make a script of `edge simulate`: all that happens before the first open question is settled by them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from edge.app.features import simulation
from edge.features.recipes.recipe_tests import MOST_CHANGES, endless
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text
from edge.model.recipe import Action, Interaction, Recipe

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


TrialReplies: TypeAlias = Annotated[tuple[TrialReply, ...], Meta(max_length=_MOST_REPLIES)]


class TrialEvent(Struct, frozen=True, kw_only=True):
    """One event of a trial, `at` seconds after its start, and the steps that are active after it.

    `kind` is `step`, `command`, `answer` or `event`.
    """

    at: float
    kind: str
    text: str
    active: tuple[str, ...]


class Trial(Struct, frozen=True, kw_only=True):
    """What happened so far; `questions` are open, without them the trial is over and has an `end`.

    With `truncated` there are only the newest of its many frames.
    `end` is `running` where the job waits, `waiting` says for what. `script` and `steps` make a test of the recipe.
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


def tried(recipe: Recipe, data: object, replies: Sequence[TrialReply], language: str) -> Trial:
    """Return what happens in a recipe (also as decoded JSON) with some decisions. Raises Refused."""
    if (simulate := simulation()) is None:
        raise Refused("no_simulator", "this program cannot simulate recipes", "Install it with the simulator.")
    script = _script(replies)
    try:
        trace = simulate(data, {"default": {"result": "none"}, **script, "most_changes": MOST_CHANGES})
    except EdgeError as error:
        raise Refused("invalid_script", error.text, "Undo the last answer.") from error
    if trace["final"] == "rejected_at_load":
        raise Refused("recipe", trace["error"], "Correct the draft first.")
    open_questions = sorted(_open(recipe, trace, replies), key=lambda question: question.at)
    until = open_questions[0].at if open_questions else float("inf")
    questions = tuple(question for question in open_questions if question.at == until)
    frames = list(_frames(trace, replies, until, language))
    is_over = not questions
    return Trial(
        frames=tuple(frames[-_MOST_FRAMES:]),
        questions=questions,
        end=trace["final"] if is_over else "",
        verdict=", ".join(dict.fromkeys(trace["verdict_by_job"].values())) if is_over else "",
        error=_error(trace, language) if is_over else "",
        seconds=trace["end"] if is_over else None,
        waiting=tuple(f"{item['step']}: {text}" for item in trace["waiting"] for text in item["waits_for"])
        if is_over
        else (),
        script=script,
        steps=tuple(item["step"] for item in trace["steps"] if item["active"] and item["t"] <= until),
        truncated=len(frames) > _MOST_FRAMES,
    )


def _error(trace: Mapping[str, Any], language: str) -> str:
    cut = endless(trace)
    return cut.in_language(language) if cut is not None else trace["error"] or ""


def _script(replies: Sequence[TrialReply]) -> dict[str, Any]:
    """Return the script that makes the decisions; what it leaves out is ok, as in each script."""
    equipment, timeline = list[dict[str, Any]](), list[dict[str, Any]]()
    for reply in replies:
        given = {"data": reply.data} if reply.data is not None else {}
        if reply.kind == "command":
            failed = {"error": reply.error} if reply.error and reply.result in {"failed", "unknown"} else {}
            result = "ok" if reply.result == "late" else reply.result
            rule = {"type_id": reply.type_id, "nth": reply.nth, "result": result, "after": _after(reply)}
            equipment.append(rule | given | failed)
        elif reply.result != "none":
            timeline.append({"at": reply.at + reply.after, "event": {"type_id": reply.type_id, **given}})
    script = {"equipment": equipment, "timeline": sorted(timeline, key=lambda entry: entry["at"])}
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
    trace: Mapping[str, Any], replies: Sequence[TrialReply], until: float, language: str
) -> Iterator[TrialEvent]:
    active: dict[str, None] = {}
    for at, _, kind, text, change in sorted(_events(trace, replies), key=lambda event: event[:2]):
        if at > until:
            return
        if change is not None:
            step, begins = change
            active.pop(step, None)
            active |= {step: None} if begins else {}
        yield TrialEvent(at=at, kind=kind, text=text.in_language(language), active=tuple(active))


def _events(trace: Mapping[str, Any], replies: Sequence[TrialReply]) -> Iterator[_Event]:
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
