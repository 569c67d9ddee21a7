"""The equipment port: send a command, stop it, deliver what comes back, ask what is still to be answered."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edge.model.equipment_trace import TraceKind
from edge.sfc.signal import Phase
from edge.store.refused import RefusedMessage


@dataclass(frozen=True, slots=True)
class Command:
    """What equipment is asked to do. The same `command_id` and `phase` again is the same command: it is dropped."""

    command_id: str
    phase: Phase
    type_id: str
    scope: str
    job_id: str
    correlation_id: str
    action: str
    attempt: int
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EquipmentAnswer:
    """What equipment says to one command; `error` is set when it could not do it."""

    command_id: str
    data: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EquipmentEvent:
    """Something that happened at the equipment. `source` and `event_id` together name it for ever (CloudEvents 3.1).

    It may name its job by `job_id` or by the job's `correlation_id`; with neither, the longest-waiting job takes it.
    """

    source: str
    event_id: str
    type_id: str
    scope: str
    data: Any = None
    job_id: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The work that a device which asks for some is given (pull): the job, the action and its parameters."""

    job_id: str
    action: str
    parameters: Mapping[str, Any]


class StationPort(Protocol):
    """What equipment delivers to. All calls raise Unavailable when the store is gone.

    `answer` and `event` return once the effect is durable; then the sender may be acknowledged.
    """

    async def answer(self, answer: EquipmentAnswer) -> None:
        """Take the answer to a command; late, duplicate and foreign ones change nothing.

        A result that is too large to be kept fails its action.
        """

    async def event(self, event: EquipmentEvent) -> Task | None:
        """Take an event; give the work it was used for, or None when nobody waited for it.

        Raises Refused(`too_large`) for one that holds more than is kept.
        """

    async def record_refusal(self, message: RefusedMessage) -> None:
        """Keep a message that cannot be taken, for a person to look at, and count it."""

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> Sequence[Command]:
        """Give the commands of these types that wait for an answer in these scopes, each as it was first sent."""

    async def is_outstanding(self, command_id: str) -> bool:
        """Tell whether a command still waits for an answer."""

    def trace(self, what: TraceKind, data: Any) -> None:
        """Hand on what passes between us and the equipment to who records it just now."""


class EquipmentPort(Protocol):
    """One piece of equipment behind its protocol. Both calls raise Unavailable when it cannot be reached now."""

    name: str

    @property
    def connected(self) -> bool | None:
        """Whether it is there, as far as its protocol tells; None when it has not said so yet."""

    async def send(self, command: Command) -> None:
        """Send a command of phase `start` or `reset`; return when it has surely left us."""

    async def stop(self, command: Command) -> None:
        """Ask the equipment to stop the command of that id."""
