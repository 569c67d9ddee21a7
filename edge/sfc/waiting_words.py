"""States what a run waits for in the words of its author and of a person at the station, without a formula."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.expression.syntax import ExpressionSyntaxError, Name, names_of, parse
from edge.foundation.text import Text, as_text, join_texts
from edge.model.localized_text import words_of
from edge.sfc.condition import wake_instants
from edge.sfc.net import Net, NetTransition
from edge.sfc.run import NO_UNSENT, ActionState, Run, Sending
from edge.sfc.signal import NO_MIRRORS, Mirrors, kind_text
from edge.sfc.titles import action_title, step_title, transition_title
from edge.sfc.view import RunView
from edge.sfc.waiting import (
    NO_HOLDERS,
    ActionWaits,
    PersonWaits,
    RunHalted,
    SecondPersonWaits,
    TransitionWaits,
    explain_waiting,
)


class WaitKind(StrEnum):
    """What ends a wait."""

    FAILURE = "failure"
    """A person who retries or skips a failed action."""
    UNKNOWN = "unknown"
    """A person who says what an action did."""
    SECOND_PERSON = "second_person"
    PAUSE = "pause"
    LOCK = "lock"
    EQUIPMENT = "equipment"
    TIME = "time"
    CONDITION = "condition"


NEEDS_A_PERSON: Final = frozenset({WaitKind.FAILURE, WaitKind.UNKNOWN, WaitKind.SECOND_PERSON})
"""The waits that only a person ends."""


class WaitInWords(Struct, frozen=True, kw_only=True):
    """What a run waits for: about what by its title, and why.

    `ask` says what a person does first, empty where the title says it. Times are milliseconds: for how long it has
    waited, and the time that the recipe allows, None where it allows any. `action`, `step`, `intervention` and `locks`,
    those that others hold, name what it is about for a program.
    """

    kind: WaitKind
    title: str
    text: str | Text
    ask: str | Text = ""
    waited_ms: int | None = None
    allowed_ms: int | None = None
    action: str = ""
    step: str = ""
    intervention: str = ""
    locks: tuple[str, ...] = ()


class WaitFacts(Struct, frozen=True):
    """Facts that a run does not hold itself: holders of locks, mirrored sets, commands not known as sent, equipment.

    `equipment` has the name of the equipment for the type of each command and event, `obstacles` why equipment of a
    name cannot work now.
    """

    holders: Mapping[str, Text] = NO_HOLDERS
    mirrors: Mirrors = NO_MIRRORS
    unsent: Mapping[str, Sending] = NO_UNSENT
    equipment: Mapping[str, str] = {}
    obstacles: Mapping[str, str | Text] = {}


def waits_in_words(net: Net, run: Run, now: int, languages: Sequence[str], facts: WaitFacts) -> tuple[WaitInWords, ...]:
    """Return what a run waits for at an instant in milliseconds; what a person has to do comes first."""
    if run.ended or run.started_at is None:
        return ()
    at = now if run.paused_at is None else run.paused_at
    words: list[WaitInWords] = []
    waits = explain_waiting(net, run, now, facts.holders, facts.mirrors, facts.unsent)
    at_work = {wait.action for wait in waits if isinstance(wait, ActionWaits)}
    for wait in waits:
        match wait:
            case PersonWaits(failure):
                title = action_title(net, failure.action, failure.step, languages)
                words.append(
                    WaitInWords(
                        kind=WaitKind.FAILURE,
                        title=title,
                        text=failure.error,
                        action=failure.action,
                        step=failure.step,
                    )
                )
            case SecondPersonWaits():
                words.append(_second_person(net, wait, languages))
            case ActionWaits():
                words.append(_action(net, wait, languages, facts))
            case TransitionWaits():
                words += _transition(net, run, wait, at, languages, facts, at_work)
            case RunHalted(text):
                words.append(WaitInWords(kind=WaitKind.PAUSE, title="", text=text))
    return tuple(sorted(words, key=lambda item: _ORDER.index(item.kind)))


_ORDER: Final = tuple(WaitKind)


def _second_person(net: Net, wait: SecondPersonWaits, languages: Sequence[str]) -> WaitInWords:
    text = Text.of("{by} asks for: {kind}. A second person confirms it.", by=wait.by, kind=kind_text(wait.kind))
    named = wait.subject.values if isinstance(wait.subject, Text) else {}
    action, step = str(named.get("action", "")), str(named.get("step", ""))
    title = action_title(net, action, step, languages) if action else str(wait.subject)
    return WaitInWords(
        kind=WaitKind.SECOND_PERSON, title=title, text=text, action=action, step=step, intervention=wait.kind
    )


def _action(net: Net, wait: ActionWaits, languages: Sequence[str], facts: WaitFacts) -> WaitInWords:
    actions = net.steps[wait.step].actions if wait.step in net.steps else ()
    types = (action.type_id for action in actions if action.name == wait.action)
    device = next((facts.equipment[type_id] for type_id in types if type_id in facts.equipment), "")
    title = action_title(net, wait.action, wait.step, languages)
    kind, waited, allowed, ask = WaitKind.EQUIPMENT, wait.age_ms, wait.left_ms, as_text("")
    if wait.state is ActionState.UNKNOWN:
        ask = Text.of("Look at “{subject}”, then decide", subject=_work(net, wait, title, languages))
        kind, text, allowed = WaitKind.UNKNOWN, wait.error or Text.of("its outcome is not known"), None
    elif wait.sending is not Sending.SENT:
        text = _unsent(wait.sending, device)
    elif wait.due_in_ms is not None and wait.left_ms is None:
        kind, allowed, text = WaitKind.TIME, wait.due_in_ms, Text.of("waits for its time")
    else:
        text = Text.of("waits for {what}", what=device) if device else Text.of("waits for the answer")
    if kind is WaitKind.EQUIPMENT and (obstacle := facts.obstacles.get(device)):
        text = join_texts(": ", (text, obstacle))
    return WaitInWords(
        kind=kind,
        title=title,
        text=text,
        ask=ask,
        waited_ms=waited,
        allowed_ms=None if allowed is None else (waited or 0) + allowed,
        action=wait.action,
        step=wait.step,
    )


def _unsent(sending: Sending, device: str) -> Text:
    if not device:
        return sending.text
    if sending is Sending.MAYBE:
        return Text.of("may have been sent to {equipment}", equipment=device)
    return Text.of("not sent to {equipment} yet", equipment=device)


def _work(net: Net, wait: ActionWaits, title: str, languages: Sequence[str]) -> str:
    """Return the name of the work that a person looks at: its step says which bolt, its action what was done."""
    of_step = step_title(net, wait.step, languages) if wait.step in net.steps else ""
    return " – ".join(dict.fromkeys(filter(None, (of_step, title))))


def _transition(
    net: Net,
    run: Run,
    wait: TransitionWaits,
    at: int,
    languages: Sequence[str],
    facts: WaitFacts,
    at_work: Collection[str],
) -> Iterator[WaitInWords]:
    transition = net.entry if wait.index < 0 else net.transitions[wait.index]
    if missing := [lock for lock in run.locks.missing if lock in transition.locks]:
        yield _locks(run, missing, at, facts)
        return
    view = RunView(net, run, at, facts.mirrors)
    if not wait.unmet or any(not view.done(step) for step in transition.needs_done):
        # The actions of the step say it, or the next signal clears it.
        return
    names = tuple(_names(wait))
    if any(name.path[0] == "actions" and name.path[1] in at_work for name in names if len(name.path) > 1):
        # The action that the condition is about says it.
        return
    title = transition_title(net, transition, languages)
    since = max((run.steps[source].activated_at for source in transition.sources), default=at)
    if left := _time_left(transition, view):
        yield WaitInWords(
            kind=WaitKind.TIME,
            title=title,
            text=Text.of("waits for its time"),
            waited_ms=at - since,
            allowed_ms=at - since + left,
        )
    elif title or (title := ", ".join(dict.fromkeys(_subject(net, name, languages) for name in names))):
        yield WaitInWords(kind=WaitKind.CONDITION, title=title, text=Text.of("not yet"), waited_ms=at - since)


def _locks(run: Run, missing: Sequence[str], at: int, facts: WaitFacts) -> WaitInWords:
    deadline = run.locks.deadline
    return WaitInWords(
        kind=WaitKind.LOCK,
        title=", ".join(map(words_of, missing)),
        text=join_texts(", ", (facts.holders.get(lock) or Text.of("not free") for lock in missing)),
        waited_ms=at - run.locks.since,
        allowed_ms=None if deadline is None else deadline - run.locks.since,
        locks=tuple(lock for lock in missing if lock in facts.holders),
    )


def _time_left(transition: NetTransition, view: RunView) -> int:
    """Return the milliseconds after which time alone may clear a transition; 0 where it cannot."""
    instants = [
        instant
        for condition in transition.conditions
        if condition.timed_steps
        for instant in wake_instants(condition, view)
        if instant > view.at
    ]
    return min(instants, default=view.at) - view.at


def _names(wait: TransitionWaits) -> Iterator[Name]:
    """Yield the names in the unmet terms of a condition."""
    for term in wait.unmet:
        with contextlib.suppress(ExpressionSyntaxError):
            yield from names_of(parse(str(term.text)))


def _subject(net: Net, name: Name, languages: Sequence[str]) -> str:
    match name.path:
        case ("actions", str() as action, *_):
            return action_title(net, action, "", languages)
        case ("steps", str() as step, *_):
            return step_title(net, step, languages)
        case path:
            return words_of(next((part for part in reversed(path) if isinstance(part, str)), ""))
