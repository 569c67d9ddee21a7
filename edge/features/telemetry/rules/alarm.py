"""The alarm state machine: from an alarm, an event and an instant to the next alarm.

Pure. One table holds the moves between the states of the condition and of its acknowledgement; shelving and suppression
silence an alarm and leave both as they are (ISA-18.2, OPC 10000-9).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import Text
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, EarlierRaise, Shelving


class Raise(Struct, frozen=True):
    """The condition holds, with what is shown of it; `latch` and `confirm` are options of its rule."""

    severity: int
    message: Mapping[str, str]
    value: Any = None
    job: str | None = None
    latch: bool = False
    confirm: bool = False


class ChangeSeverity(Struct, frozen=True):
    """The condition still holds, with another severity."""

    severity: int
    message: Mapping[str, str]
    value: Any = None


class Clear(Struct, frozen=True):
    """The condition holds no longer."""


class Acknowledge(Struct, frozen=True):
    """A person has seen the alarm with all its raises, or only the raise at an instant."""

    by: str
    comment: str = ""
    raised_at: int | None = None


class Confirm(Struct, frozen=True):
    """A person has acted on the alarm with all its raises, or only on the raise at an instant."""

    by: str
    comment: str = ""
    raised_at: int | None = None


class AddComment(Struct, frozen=True):
    """A person remarks something."""

    by: str
    comment: str


class Reset(Struct, frozen=True):
    """A person resets a latched alarm."""

    by: str
    comment: str = ""


class Shelve(Struct, frozen=True):
    """A person silences the alarm: until an instant, or (`until` None) until its condition ends."""

    by: str
    comment: str = ""
    until: int | None = None


class Unshelve(Struct, frozen=True):
    """A person ends the shelving."""

    by: str
    comment: str = ""


class ExpireShelving(Struct, frozen=True):
    """Nothing but time: a shelving may have ended."""


class Suppress(Struct, frozen=True):
    """The maintenance mode silences the alarm."""


class Unsuppress(Struct, frozen=True):
    """The maintenance mode ends."""


class Disable(Struct, frozen=True):
    """A person takes the alarm out of service: it is silent until a person enables it."""

    by: str
    comment: str = ""


class Enable(Struct, frozen=True):
    """A person puts the alarm into service again."""

    by: str
    comment: str = ""


AlarmEvent: TypeAlias = (
    Raise
    | ChangeSeverity
    | Clear
    | Acknowledge
    | Confirm
    | AddComment
    | Reset
    | Shelve
    | Unshelve
    | ExpireShelving
    | Suppress
    | Unsuppress
    | Disable
    | Enable
)


class AlarmChanged(Struct, frozen=True):
    """The alarm after the event."""

    alarm: Alarm
    kind: AlarmChangeKind


class AlarmUnchanged(Struct, frozen=True):
    """The event of the process, or of time, changes nothing."""


class AlarmRefusal(Struct, frozen=True):
    """The request of a person is not allowed in this state."""

    reason: str | Text


class _Move(Enum):
    """A column of the table; clearing and acknowledging have one for each option of the rule."""

    RAISE = auto()
    ESCALATE = auto()
    EASE = auto()
    CLEAR = auto()
    LATCH = auto()
    ACKNOWLEDGE = auto()
    ACKNOWLEDGE_TO_CONFIRM = auto()
    CONFIRM = auto()
    RESET = auto()


MAX_EARLIER: Final = 10
"""Earlier raises that are kept; older ones are only counted."""

_States: TypeAlias = tuple[ActiveState, AckState]
_INACTIVE, _ACTIVE, _LATCHED = ActiveState.INACTIVE, ActiveState.ACTIVE, ActiveState.LATCHED
_UNACKNOWLEDGED, _ACKNOWLEDGED, _CONFIRMED = AckState.UNACKNOWLEDGED, AckState.ACKNOWLEDGED, AckState.CONFIRMED

_TABLE: Final[Mapping[tuple[_States, _Move], _States]] = MappingProxyType(
    {
        **{((at, ack), _Move.RAISE): (_ACTIVE, _UNACKNOWLEDGED) for at in (_INACTIVE, _LATCHED) for ack in AckState},
        **{((_ACTIVE, ack), _Move.ESCALATE): (_ACTIVE, _UNACKNOWLEDGED) for ack in AckState},
        **{((_ACTIVE, ack), _Move.EASE): (_ACTIVE, ack) for ack in AckState},
        **{((_ACTIVE, ack), _Move.CLEAR): (_INACTIVE, ack) for ack in AckState},
        **{((_ACTIVE, ack), _Move.LATCH): (_LATCHED, ack) for ack in AckState},
        **{((at, _UNACKNOWLEDGED), _Move.ACKNOWLEDGE): (at, _CONFIRMED) for at in ActiveState},
        **{((at, _UNACKNOWLEDGED), _Move.ACKNOWLEDGE_TO_CONFIRM): (at, _ACKNOWLEDGED) for at in ActiveState},
        **{((at, _ACKNOWLEDGED), _Move.CONFIRM): (at, _CONFIRMED) for at in ActiveState},
        ((_LATCHED, _CONFIRMED), _Move.RESET): (_INACTIVE, _CONFIRMED),
    }
)
"""By the states and the move: the next states. A move without an entry is not possible there."""

_KINDS: Final[Mapping[_Move, AlarmChangeKind]] = MappingProxyType(
    {
        _Move.RAISE: AlarmChangeKind.RAISED,
        _Move.ESCALATE: AlarmChangeKind.ESCALATED,
        _Move.EASE: AlarmChangeKind.EASED,
        _Move.CLEAR: AlarmChangeKind.CLEARED,
        _Move.LATCH: AlarmChangeKind.CLEARED,
        _Move.ACKNOWLEDGE: AlarmChangeKind.ACKNOWLEDGED,
        _Move.ACKNOWLEDGE_TO_CONFIRM: AlarmChangeKind.ACKNOWLEDGED,
        _Move.CONFIRM: AlarmChangeKind.CONFIRMED,
        _Move.RESET: AlarmChangeKind.RESET,
    }
)


def transition(alarm: Alarm, event: AlarmEvent, now: int) -> AlarmChanged | AlarmUnchanged | AlarmRefusal:
    """Return the alarm after an event at `now`, or that it does not change, or why the request is refused."""
    match event:
        case Raise() | ChangeSeverity() | Clear():
            return _follow_condition(alarm, event, now)
        case Acknowledge():
            return _acknowledge(alarm, event, now) or AlarmRefusal("the alarm is acknowledged already")
        case Confirm():
            return _confirm(alarm, event, now) or AlarmRefusal(
                "only an acknowledged alarm that is not confirmed can be confirmed"
            )
        case Reset(by=by, comment=comment):
            return _answer(alarm, _Move.RESET, by, comment, now) or AlarmRefusal(
                "only a latched alarm that is acknowledged can be reset"
            )
        case AddComment(by=by, comment=comment):
            return AlarmChanged(_signed(alarm, by, comment, now), AlarmChangeKind.COMMENTED)
        case Shelve() | Unshelve() | ExpireShelving():
            return _shelve(alarm, event, now)
        case Suppress():
            return _suppress(alarm, now, suppressed=True)
        case Unsuppress():
            return _suppress(alarm, now, suppressed=False)
        case Disable() | Enable():
            return _put_in_service(alarm, event, now)
        case _:
            assert_never(event)


def _follow_condition(alarm: Alarm, event: Raise | ChangeSeverity | Clear, now: int) -> AlarmChanged | AlarmUnchanged:
    move = _move_of(alarm, event)
    target = _TABLE.get(((alarm.active, alarm.acknowledgement), move)) if move else None
    if move is None or target is None:
        return AlarmUnchanged()
    active, acknowledgement = target
    after = replace(alarm, active=active, acknowledgement=acknowledgement, changed_at=now)
    match event:
        case Clear():
            shelving = after.shelving
            if shelving is not None and shelving.one_shot:
                shelving = None
            after = replace(after, cleared_at=now, shelving=shelving)
        case Raise() if move is _Move.RAISE:
            after = replace(
                after,
                severity=event.severity,
                message=event.message,
                value=event.value,
                job=event.job,
                latch=event.latch,
                confirm=event.confirm,
                raised_at=now,
                cleared_at=None,
                count=1 if alarm.is_normal else alarm.count + 1,
                earlier=_earlier(alarm),
            )
        case Raise() | ChangeSeverity():
            after = replace(after, severity=event.severity, message=event.message, value=event.value)
        case _:
            assert_never(event)
    return AlarmChanged(after, _KINDS[move])


def _move_of(alarm: Alarm, event: Raise | ChangeSeverity | Clear) -> _Move | None:
    """Return the move that an event of the condition asks for; a raise of an active alarm changes its severity."""
    match event:
        case Clear():
            return _Move.LATCH if alarm.latch else _Move.CLEAR
        case Raise() if alarm.active is not ActiveState.ACTIVE:
            return _Move.RAISE
        case Raise(severity=severity) | ChangeSeverity(severity=severity):
            if severity == alarm.severity:
                return None
            return _Move.ESCALATE if severity > alarm.severity else _Move.EASE
        case _:
            assert_never(event)


def _answer(alarm: Alarm, move: _Move, by: str, comment: str, now: int) -> AlarmChanged | None:
    """Return the alarm after the answer of a person; None when the table has no such move."""
    target = _TABLE.get(((alarm.active, alarm.acknowledgement), move))
    if target is None:
        return None
    after = replace(_signed(alarm, by, comment, now), active=target[0], acknowledgement=target[1])
    return AlarmChanged(after, _KINDS[move])


def _acknowledge(alarm: Alarm, event: Acknowledge, now: int) -> AlarmChanged | None:
    """Return the alarm after an acknowledgement; None when nothing waits for it."""
    is_meant = _is_meant(event.raised_at)
    seen = tuple(
        replace(earlier_raise, acknowledged=True) if is_meant(earlier_raise.raised_at) else earlier_raise
        for earlier_raise in alarm.earlier
    )
    earlier = (
        seen if alarm.confirm else tuple(earlier_raise for earlier_raise in seen if not earlier_raise.acknowledged)
    )
    move = _Move.ACKNOWLEDGE_TO_CONFIRM if alarm.confirm else _Move.ACKNOWLEDGE
    return _answer_raises(alarm, move, event, earlier, now)


def _confirm(alarm: Alarm, event: Confirm, now: int) -> AlarmChanged | None:
    """Return the alarm after a confirmation; None when nothing waits for it."""
    if event.raised_at is None and alarm.acknowledgement is AckState.UNACKNOWLEDGED:
        return None
    is_meant = _is_meant(event.raised_at)
    earlier = tuple(
        earlier_raise
        for earlier_raise in alarm.earlier
        if not (earlier_raise.acknowledged and is_meant(earlier_raise.raised_at))
    )
    return _answer_raises(alarm, _Move.CONFIRM, event, earlier, now)


def _is_meant(raised_at: int | None) -> Callable[[int | None], bool]:
    return lambda at: raised_at is None or raised_at == at


def _answer_raises(
    alarm: Alarm, move: _Move, event: Acknowledge | Confirm, earlier: tuple[EarlierRaise, ...], now: int
) -> AlarmChanged | None:
    """Return the alarm after the answer of a person to its last raise, to earlier ones, or to all."""
    answered = None
    if event.raised_at in {None, alarm.raised_at}:
        answered = _answer(alarm, move, event.by, event.comment, now)
    if answered is None and earlier == alarm.earlier:
        return None
    after = answered.alarm if answered else _signed(alarm, event.by, event.comment, now)
    return AlarmChanged(replace(after, earlier=earlier), _KINDS[move])


def _earlier(alarm: Alarm) -> tuple[EarlierRaise, ...]:
    """Return the raises that wait for a person when the alarm is raised again."""
    if alarm.acknowledgement is AckState.CONFIRMED or alarm.raised_at is None:
        return alarm.earlier
    last = EarlierRaise(
        raised_at=alarm.raised_at,
        cleared_at=alarm.cleared_at,
        severity=alarm.severity,
        message=alarm.message,
        value=alarm.value,
        acknowledged=alarm.acknowledgement is AckState.ACKNOWLEDGED,
    )
    return (*alarm.earlier, last)[-MAX_EARLIER:]


def _signed(alarm: Alarm, by: str, comment: str, now: int) -> Alarm:
    return replace(alarm, by=by, comment=comment or alarm.comment, changed_at=now)


def _shelve(
    alarm: Alarm, event: Shelve | Unshelve | ExpireShelving, now: int
) -> AlarmChanged | AlarmUnchanged | AlarmRefusal:
    shelving = alarm.shelving
    match event:
        case Shelve(until=until) if until is not None and until <= now:
            return AlarmRefusal("the end of the shelving has passed")
        case Shelve(until=None) if alarm.active is ActiveState.INACTIVE:
            return AlarmRefusal("the condition has ended; shelve the alarm until an instant")
        case Shelve(by=by, comment=comment, until=until):
            silence = Shelving(by=by, at=now, comment=comment, until=until, one_shot=until is None)
            after = replace(_signed(alarm, by, comment, now), shelving=silence)
            return AlarmChanged(after, AlarmChangeKind.SHELVED)
        case Unshelve(by=by, comment=comment):
            if shelving is None:
                return AlarmRefusal("the alarm is not shelved")
            return AlarmChanged(replace(_signed(alarm, by, comment, now), shelving=None), AlarmChangeKind.UNSHELVED)
        case ExpireShelving():
            if shelving is None or shelving.until is None or shelving.until > now:
                return AlarmUnchanged()
            return AlarmChanged(replace(alarm, shelving=None, changed_at=now), AlarmChangeKind.UNSHELVED)
        case _:
            assert_never(event)


def _suppress(alarm: Alarm, now: int, *, suppressed: bool) -> AlarmChanged | AlarmUnchanged:
    if alarm.suppressed is suppressed:
        return AlarmUnchanged()
    kind = AlarmChangeKind.SUPPRESSED if suppressed else AlarmChangeKind.UNSUPPRESSED
    return AlarmChanged(replace(alarm, suppressed=suppressed, changed_at=now), kind)


def _put_in_service(alarm: Alarm, event: Disable | Enable, now: int) -> AlarmChanged | AlarmRefusal:
    disabled = isinstance(event, Disable)
    if alarm.disabled is disabled:
        return AlarmRefusal(
            Text.of("the alarm is {value} already", value=Text.of("disabled") if disabled else Text.of("enabled"))
        )
    kind = AlarmChangeKind.DISABLED if disabled else AlarmChangeKind.ENABLED
    return AlarmChanged(replace(_signed(alarm, event.by, event.comment, now), disabled=disabled), kind)


PLACEHOLDERS: Final = ("rule", "subject", "name", "severity", "value", "job", "at")
DATA: Final = "data."
"""Begins the placeholder of a member of the data of an occurrence."""
DEFAULT_LANGUAGE: Final = "en"
MAX_VALUE_LENGTH: Final = 200
"""Characters of a value in a message; the rest is cut off."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def render_message(message: str | Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each language with its placeholders replaced; a fact that is missing leaves a dash.

    A member of the data that has a text for each language is that of the language.
    """
    texts = {DEFAULT_LANGUAGE: message} if isinstance(message, str) else message

    def fact(language: str, found: re.Match[str]) -> str:
        name = found[1]
        data = facts.get("data")
        if name.startswith(DATA):
            value = data.get(name.removeprefix(DATA)) if isinstance(data, Mapping) else None
            value = value.get(language, value) if isinstance(value, Mapping) else value
        else:
            value = facts.get(name)
        return "–" if value is None else _shown(value)

    return {language: _PLACEHOLDER.sub(partial(fact, language), text) for language, text in texts.items()}


def faults_of_message(message: str | Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of a message: no text, or placeholders that do not exist."""
    texts = {DEFAULT_LANGUAGE: message} if isinstance(message, str) else message
    if not texts or not all(texts.values()):
        yield "member 'message': a text is missing"
    for language, text in texts.items():
        for name in _PLACEHOLDER.findall(text):
            is_data = name.startswith(DATA) and name.removeprefix(DATA).isidentifier()
            if name not in PLACEHOLDERS and not is_data:
                known = ", ".join((*PLACEHOLDERS, f"{DATA}<member>"))
                yield f"member 'message': unknown placeholder '{name}' in language '{language}'; write one of {known}"


def _shown(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
