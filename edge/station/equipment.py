"""The equipment port: what the station asks of equipment, and what equipment reports to the station."""

import base64
import hashlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import OpenSafing
from edge.model.equipment_traffic import TrafficKind
from edge.sfc.signal import Phase
from edge.store.dead_letters import RefusedMessage

_MARK_LENGTH = 20


class NoRoom(Unavailable):
    """The equipment has used its share of marks: an event of it is taken later, when old marks have expired."""


class NotSent(Unavailable):
    """A command did not leave the gateway, for sure; it is sent later."""


class Repetition(StrEnum):
    """The effect of a start that is sent a second time.

    `repeatable`: the work may be done again (a picture, a lamp). `recognisable`: the device drops a command id that it
    has seen, also after it was restarted. `once`: the start is sent once; a lost outcome is for a person or the recipe.
    """

    REPEATABLE = "repeatable"
    RECOGNISABLE = "recognisable"
    ONCE = "once"


class Begin(Enum):
    """The answer to a request for the begun mark of a command."""

    NEW = auto()
    """The mark is committed, and the start was not sent: send it."""
    AGAIN = auto()
    """The mark was committed before, and the start may have been sent. Find its outcome, or answer OutcomeUnknown."""
    LOST = auto()
    """As AGAIN, and in a former generation of the store: its answer may have been lost with the former primary."""
    GONE = auto()
    """The command was stopped or answered meanwhile: do not start it."""


class Command(Struct, frozen=True):
    """A command to equipment. The same `command_id` and `phase` again is the same command.

    `begun`: its begun mark is committed, so the start may have been sent. `offered_again`: it was, or may have been,
    sent to the equipment before. `queued`: this gateway has yet to send it. `expires_at` is the deadline of the action,
    in milliseconds since the epoch.
    """

    command_id: str
    phase: Phase
    type_id: str
    scope: str
    job_id: str
    correlation_id: str
    action: str
    attempt: int
    parameters: Mapping[str, Any]
    begun: bool = False
    offered_again: bool = False
    queued: bool = False
    expires_at: int | None = None
    causation_id: str = ""
    """The id of the event that stored the job order."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """The W3C Trace Context of that event: `traceparent`, `tracestate`."""

    @property
    def mark(self) -> str:
        """Return a name of the command in 20 characters (a-z, 2-7), for devices with short identifiers."""
        digest = hashlib.sha256(self.command_id.encode()).digest()
        return base64.b32encode(digest).decode().lower()[:_MARK_LENGTH]


class EquipmentAnswer(Struct, frozen=True):
    """The answer of equipment to one command; `error` is set when it failed."""

    command_id: str
    data: Any = None
    error: str | Text | None = None


class OutcomeUnknown(Struct, frozen=True):
    """The equipment may have carried out a command, and the result cannot be found."""

    command_id: str
    reason: str | Text


class LateResult(Struct, frozen=True):
    """A result that no command waits for.

    `source` and `key` together identify it permanently; `command_id` where known. With a `reason` it does not count for
    that command, which may wait for another result.
    """

    source: str
    key: str
    scope: str
    data: Any
    command_id: str | None = None
    created_at: int | None = None
    reason: str = ""


class EquipmentEvent(Struct, frozen=True):
    """An event of the equipment. `source` and `event_id` together identify it permanently (CloudEvents 3.1).

    It may name its job by `job_id` or by the job's `correlation_id`; with neither, the longest-waiting job takes it.
    """

    source: str
    event_id: str
    type_id: str
    scope: str
    data: Any = None
    job_id: str | None = None
    correlation_id: str | None = None


class Task(Struct, frozen=True):
    """The work that a requesting device receives (pull): the job, the action and its parameters."""

    job_id: str
    action: str
    parameters: Mapping[str, Any]


class Kept(Struct, frozen=True):
    """The event is kept for the job that it names, which does not wait for it yet."""

    job_id: str


class StationPort(Protocol):
    """The station as equipment sees it.

    All calls raise Unavailable when the store is unavailable. Each call returns when its effect is durable; only then
    may the sender be acknowledged.
    """

    async def begin(self, command_id: str) -> Begin:
        """Commit the begun mark of a command with repetition `once` before its start is sent.

        Raises NotSent when the mark is not confirmed.
        """

    def now(self) -> int:
        """Return the present instant of the clock of deadlines, in milliseconds since the epoch."""

    def withhold(self, command_id: str) -> None:
        """Record that a start did not leave although `begin` returned NEW: it returns NEW again."""

    async def permit_start(self) -> None:
        """Raise NotSent while no start may leave: no majority of the sentinels confirms the primary of the store.

        Call it right before a start is sent, also one that has waited in memory for the device.
        """

    async def admits(self, command_id: str | None) -> bool:
        """Return whether an answer to a command, or to none, is handled; of unsolicited ones only a sample is."""

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        """Apply the answer to a command.

        A repeated answer changes nothing; a late result is kept. A result that exceeds the limit fails its action.
        """

    async def stopped(self, command_id: str, error: str | Text | None, *, is_answer: bool = True) -> None:
        """Record that the equipment carried out a stop, or why it did not; without `is_answer`, it has not answered."""

    async def late(self, result: LateResult) -> None:
        """Keep a result that no command waits for."""

    async def event(self, event: EquipmentEvent) -> Task | Kept | None:
        """Apply an event; return the work it was used for, Kept, or None when it was discarded.

        Raises Refused(`too_large`) when its data exceed the limit.
        """

    async def record_refusal(self, message: RefusedMessage) -> None:
        """Keep a refused message for a person to look at, and count it."""

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> Sequence[Command]:
        """Return the starts and resets of these types that wait for an answer in these scopes; begun starts first.

        Resets follow, then the other starts, each in the order of their decisions.
        """

    async def is_outstanding(self, command_id: str) -> bool:
        """Return whether a command still waits for an answer."""

    async def has_result(self, command_id: str, result_id: str) -> bool:
        """Return whether a result of a command is stored already: as its answer, within that, or as late."""

    async def has_open_stop(self, command_id: str) -> bool:
        """Return whether the stop of a command is not confirmed yet: its result was not received before."""

    async def is_disabled_elsewhere(self, place: str) -> bool:
        """Return whether another system has disabled the tool at a place, as a gateway found it."""

    async def keep_disabled(self, place: str, *, disabled: bool) -> None:
        """Keep whether another system has disabled the tool at a place."""

    @property
    def gateway(self) -> str:
        """The name of this gateway: others on the store may have the same equipment."""

    async def recall(self, equipment: str) -> Mapping[str, str]:
        """Return the texts that equipment of this name has remembered; they survive the connection and a restart."""

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        """Remember these texts of equipment by their names; the others stay. Call it for changed texts only."""

    async def store_file(self, command_id: str, parts: AsyncGenerator[bytes, None]) -> Mapping[str, Any]:
        """Store a file of the result of a command, part by part; return the reference to it for the result.

        A file that cannot be stored, or that `parts` refuses, has an `error` there. Raises Unavailable as `parts`.
        """

    def record_repeated_start(self) -> None:
        """Count a start that the equipment may have received before."""

    def report_traffic(self, what: TrafficKind, data: Any) -> None:
        """Report traffic with the equipment to its recorders."""


class EquipmentPort(Protocol):
    """One piece of equipment behind its protocol.

    Every command raises Unavailable when it cannot be sent now: NotSent when it did not leave the gateway for sure.
    """

    name: str

    @property
    def connected(self) -> bool | None:
        """Whether it is connected; None while the protocol has not shown it."""

    @property
    def connection(self) -> ConnectionState:
        """The connection: since when, and while it is not connected the reason."""

    @property
    def problem(self) -> str | Text:
        """The reason why it cannot work although it is connected; empty when it can."""

    @property
    def connection_count(self) -> int:
        """How often it has connected, or reported that it is online."""

    def repetition_of(self, type_id: str) -> Repetition:
        """Return the effect of a start of this type that is sent a second time."""

    async def send(self, command: Command) -> None:
        """Send a start; return when it was sent, or when it waits in memory for the device."""

    async def reset(self, command: Command) -> None:
        """Send a reset: disable and deselect the tool and stop its work; a reset never starts work."""

    async def stop(self, command: Command) -> None:
        """Stop the work of a command."""


@runtime_checkable
class QueueingEquipment(Protocol):
    """Equipment whose port keeps a start in memory until the device can receive it."""

    def withdraw(self, command_id: str) -> bool:
        """Drop a start that has not left the gateway; return False for one that may have left it."""


def withdraw(equipment: object, command_id: str) -> bool:
    """Drop a start from the memory of equipment; return whether it has certainly not left the gateway."""
    return isinstance(equipment, QueueingEquipment) and equipment.withdraw(command_id)


@runtime_checkable
class ProgrammedEquipment(Protocol):
    """Equipment that may be able to list its programs: joining processes, parameter sets, jobs."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs; empty while they are not known."""


def programs_of(equipment: object) -> tuple[str, ...]:
    """Return the programs of equipment, or of its device; none when it cannot list them."""
    return equipment.programs if isinstance(equipment, ProgrammedEquipment) else ()


@runtime_checkable
class ReleasedEquipment(Protocol):
    """Equipment that disables its tool while no command needs it."""

    @property
    def open_release(self) -> OpenSafing | None:
        """The release of its tool that the device has not confirmed; None when it has."""


def release_of(equipment: object) -> OpenSafing | None:
    """Return the release that equipment has not confirmed; None where there is none."""
    return equipment.open_release if isinstance(equipment, ReleasedEquipment) else None


@runtime_checkable
class PausableEquipment(Protocol):
    """Equipment that may be able to pause the work of a command."""

    @property
    def can_pause(self) -> bool:
        """Whether the equipment takes pauses and resumes."""

    async def pause(self, command: Command) -> None:
        """Send a pause or a resume, as its phase says; raises Unavailable when it cannot be sent now."""
