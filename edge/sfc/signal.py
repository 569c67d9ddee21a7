"""The signals to a run and the result of a decision about it: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field

from edge.expression.value import UNKNOWN, Truth
from edge.foundation.text import Text, join_texts
from edge.model.recipe import Intervention
from edge.sfc.identifiers import AssociationKey
from edge.sfc.run import Run


class MirrorCopy(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The members of a mirrored set as read last; `is_stale` while it cannot be read any more.

    `others` is None for a whole copy. A recorded copy holds only what a decision asked for: `others` are the names that
    were not members, and nothing is known of the rest.
    """

    members: frozenset[str] = frozenset()
    is_stale: bool = False
    others: frozenset[str] | None = None

    def has(self, member: str) -> Truth:
        """Return whether a name is a member; UNKNOWN when a recorded copy does not say it."""
        if member in self.members:
            return True
        return False if self.others is None or member in self.others else UNKNOWN

    @property
    def text(self) -> Text:
        """Return the number of members, and whether the copy is stale."""
        number = len(self.members)
        size = Text.of("a copy of 1 member") if number == 1 else Text.of("a copy of {number} members", number=number)
        return Text.of("{size}, stale", size=size) if self.is_stale else size

    def __str__(self) -> str:
        return str(self.text)


Mirrors: TypeAlias = Mapping[str, MirrorCopy]
"""The copies by the name of their mirror; one that was not read yet is absent."""

NO_MIRRORS: Final[Mirrors] = MappingProxyType({})


class AskedMirrors:
    """The copies that a decision sees; collects what it asks for, so that its record can repeat it."""

    __slots__ = ("_copies", "recorded")

    def __init__(self, copies: Mirrors) -> None:
        self._copies = copies
        self.recorded: dict[str, MirrorCopy] = {}

    def is_stale(self, name: str) -> Truth:
        """Return whether a mirror is stale; UNKNOWN before it was read."""
        recorded = self._recorded(name)
        return UNKNOWN if recorded is None else recorded.is_stale

    def has(self, name: str, member: str) -> Truth:
        """Return whether a mirror has a member; UNKNOWN before it was read."""
        recorded = self._recorded(name)
        if recorded is None:
            return UNKNOWN
        found = self._copies[name].has(member)
        if recorded.has(member) is UNKNOWN and found is not UNKNOWN:
            members = recorded.members | {member} if found else recorded.members
            others = recorded.others or frozenset()
            self.recorded[name] = MirrorCopy(members, recorded.is_stale, others if found else others | {member})
        return found

    def show(self, name: str) -> Text:
        """Return the state of a mirror as text."""
        copy = self._copies.get(name)
        return Text.of("not read yet") if copy is None else copy.text

    def _recorded(self, name: str) -> MirrorCopy | None:
        """Return what is recorded of a mirror so far; None before the mirror was read."""
        copy = self._copies.get(name)
        if copy is None:
            return None
        return self.recorded.setdefault(name, MirrorCopy(is_stale=copy.is_stale, others=frozenset()))


class Start(Struct, frozen=True):
    """The job begins: the initial step becomes active."""


class Answer(Struct, frozen=True):
    """Equipment answered a command; `data` becomes the result of the action."""

    command_id: str
    ok: bool
    data: Any = None
    error: str | Text | None = None


class Unknown(Struct, frozen=True):
    """The outcome of a command cannot be found."""

    command_id: str
    reason: str | Text


class Begun(Struct, frozen=True):
    """A start is about to be sent and must not be sent again by software; `by` names the sending process."""

    command_id: str
    by: str


class Withdrawn(Struct, frozen=True):
    """A command that has ended never left the gateway, for a `reason` such as a missing connection.

    With `may_have_left` an earlier process may have sent it.
    """

    command_id: str
    reason: str | Text = ""
    may_have_left: bool = False


class Resolution(StrEnum):
    """The decision of an operator about an unknown outcome."""

    DONE = "done"
    FAILED = "failed"
    REPEAT = "repeat"

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _RESOLUTIONS[self]


_RESOLUTIONS: Final = {
    Resolution.DONE: Text.of("done"),
    Resolution.FAILED: Text.of("failed"),
    Resolution.REPEAT: Text.of("repeat"),
}


class SecondPerson(Struct, frozen=True):
    """A decision takes effect when another person asks for the same in time; `has_login` lets this one confirm."""

    within_ms: int
    has_login: bool = True


class Resolve(Struct, frozen=True):
    """An operator decides about the unknown outcome of an action; `data` is its result, `by` names the operator."""

    action: str
    resolution: Resolution
    data: Any = None
    reason: str = ""
    by: str = ""
    second: SecondPerson | None = None

    @property
    def kind(self) -> str:
        """Return the name of the decision, such as `resolve done`."""
        return f"resolve {self.resolution}"

    @property
    def text(self) -> Text:
        """Return it for people."""
        resolution = Text.of("resolve {action} as {resolution}", action=self.action, resolution=self.resolution.text)
        return _of_person(resolution, self)


class Intervene(Struct, frozen=True):
    """A person intervenes in a run as its recipe allows; `by` names the person.

    `retry` and `skip` name an action, with a step where it stands in several; `data` is the result of a skipped action.
    `complete` names a step, `force` the step to leave and a target to enter.
    """

    kind: Intervention
    action: str = ""
    step: str = ""
    target: str = ""
    data: Any = None
    reason: str = ""
    by: str = ""
    second: SecondPerson | None = None

    @property
    def subject(self) -> str | Text:
        """Return what the intervention is about: an action, a step, or a transition."""
        if self.action:
            return Text.of("{action} of {step}", action=self.action, step=self.step) if self.step else self.action
        return " → ".join(name for name in (self.step, self.target) if name)

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _of_person(join_texts(" ", (kind_text(self.kind), self.subject)), self)


class PersonAnswer(Struct, frozen=True):
    """A person answered a command that asks for it: `data` becomes the result of the action, `by` names the person.

    With `second` the answer counts when another person answers the same in time.
    """

    command_id: str
    data: Any
    by: str
    second: SecondPerson | None = None

    @property
    def kind(self) -> str:
        """Return the name of the decision."""
        return "answer"

    @property
    def reason(self) -> str:
        """Return the empty text: an answer needs no reason."""
        return ""

    @property
    def text(self) -> Text:
        """Return it for people."""
        attempt = " ".join(self.command_id.split("/")[2:])
        answer = Text.of("answer to {attempt} by {by}", attempt=attempt, by=self.by or Text.of("unknown"))
        return Text.of("{decision}, with a second person", decision=answer) if self.second else answer


def _of_person(decision: Text, signal: Resolve | Intervene) -> Text:
    by = signal.by or Text.of("unknown")
    text = Text.of("{decision} by {by}: {reason}", decision=decision, by=by, reason=signal.reason)
    return Text.of("{decision}, with a second person", decision=text) if signal.second else text


_KINDS: Final[Mapping[str, Text]] = MappingProxyType(
    {
        Intervention.RETRY: Text.of("retry"),
        Intervention.SKIP: Text.of("skip"),
        Intervention.FORCE: Text.of("force"),
        Intervention.COMPLETE: Text.of("complete"),
        "answer": Text.of("answer"),
        "resolve done": Text.of("resolve done"),
        "resolve failed": Text.of("resolve failed"),
        "resolve repeat": Text.of("resolve repeat"),
    }
)


def kind_text(kind: str) -> str | Text:
    """Return the kind of an intervention for people."""
    return _KINDS.get(kind, kind)


class Late(Struct, frozen=True):
    """A result arrived for a command that no longer waits; it is kept without effect."""

    command_id: str
    data: Any = None
    error: str | Text | None = None


class Event(Struct, frozen=True):
    """Equipment sent an event; `named` is true when it named this job. `id` identifies it."""

    type_id: str
    data: Any
    id: str
    named: bool


class Tick(Struct, frozen=True):
    """Time has passed, or an identifier of a simulation has changed."""


class Pause(Struct, frozen=True):
    """The operator pauses the job."""


class Resume(Struct, frozen=True):
    """The operator resumes a paused job."""


class Granted(Struct, frozen=True):
    """The run holds these locks, for which it has waited."""

    locks: tuple[str, ...]


class Abort(Struct, frozen=True):
    """The job ends at once: commands are stopped, stored actions reset."""

    reason: str | Text = ""


class Stop(Struct, frozen=True):
    """The job ends in an orderly way before its recipe does: as Abort, with another outcome."""

    reason: str | Text = ""


Signal: TypeAlias = (
    Start
    | Answer
    | Unknown
    | Begun
    | Withdrawn
    | Resolve
    | Intervene
    | PersonAnswer
    | Late
    | Event
    | Tick
    | Granted
    | Pause
    | Resume
    | Abort
    | Stop
)


class Phase(StrEnum):
    """The phase of a command; pause and resume go to equipment that supports them, and have the id of their start."""

    START = "start"
    STOP = "stop"
    RESET = "reset"
    PAUSE = "pause"
    RESUME = "resume"


class CommandRequest(Struct, frozen=True):
    """A command to send, at least once, under its id; a stop has the id of the command it stops."""

    phase: Phase
    command_id: str
    action: str
    step: str
    attempt: int
    type_id: str
    parameters: dict[str, Any]


class StepChange(Struct, frozen=True):
    """A step became active or inactive."""

    step: str
    active: bool
    at: int


class Advanced(Struct, frozen=True):
    """The result of a signal: the next run, the commands to send, the changed steps, in order.

    `taken` is the key of the association whose wait an event has ended, `mirrors` what it asked of mirrored sets.
    """

    run: Run
    requests: tuple[CommandRequest, ...]
    steps: tuple[StepChange, ...]
    taken: AssociationKey | None = None
    mirrors: Mirrors = field(default_factory=lambda: NO_MIRRORS)


class IgnoredKind(StrEnum):
    """Why a signal changes nothing."""

    LATE = "late"
    DUPLICATE = "duplicate"
    FOREIGN = "foreign"
    NOT_WAITING = "not_waiting"
    NOT_UNKNOWN = "not_unknown"
    NOT_ALLOWED = "not_allowed"
    NOT_POSSIBLE = "not_possible"
    NEEDS_SECOND = "needs_second"
    TOO_MANY = "too_many"
    NOT_STARTED = "not_started"
    STARTED = "started"
    PAUSED = "paused"
    NOT_PAUSED = "not_paused"
    ENDED = "ended"


class Ignored(Struct, frozen=True):
    """The signal changes nothing, and why."""

    kind: IgnoredKind
    reason: str | Text
