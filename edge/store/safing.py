"""Stops and resets that the equipment has not confirmed; they outlive their job, its run and this process."""

import msgspec
import structlog

from edge.sfc.signal import Phase
from edge.store.client import Store
from edge.store.commit import Commit, operation, spread
from edge.store.keys import Keys

logger = structlog.get_logger(__name__)


class SafingCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A stop or a reset with all that it takes to send it again.

    It is due `since` an instant, in milliseconds since the epoch.

    `error` says why the equipment declined it. `released_by` is the operator who has made the tool safe by hand, and
    `release_reason` what the operator has seen: it is not sent any more.
    """

    phase: Phase
    command_id: str
    type_id: str
    scope: str
    job_id: str
    correlation_id: str
    action: str
    attempt: int
    parameters: dict[str, object] = {}
    since: int
    error: str = ""
    released_by: str = ""
    release_reason: str = ""
    causation_id: str = ""
    trace: dict[str, str] = {}


def save(keys: Keys, command: SafingCommand) -> Commit:
    """Keep a command until it is confirmed or released."""
    return operation("HSET", keys.safing(), _field(command.phase, command.command_id), _text(command))


def remove(keys: Keys, command_id: str) -> Commit:
    """Remove the stop and the reset of a command id: confirmed by the equipment, or released by an operator."""
    return spread("HDEL", (keys.safing(),), (_field(phase, command_id) for phase in (Phase.STOP, Phase.RESET)))


async def load_all(store: Store) -> list[SafingCommand]:
    """Return every command that is not confirmed, the oldest first; one that cannot be read is logged and left out."""
    stored: dict[str, str] = await store.execute("HGETALL", store.keys.safing())
    found = [command for field, text in stored.items() if (command := _read(field, text)) is not None]
    return sorted(found, key=lambda safing_command: (safing_command.since, safing_command.command_id))


async def load(store: Store, command_id: str) -> list[SafingCommand]:
    """Return the stop and the reset of a command id that are not confirmed."""
    fields = [_field(phase, command_id) for phase in (Phase.STOP, Phase.RESET)]
    texts = await store.execute("HMGET", store.keys.safing(), *fields)
    pairs = zip(fields, texts, strict=True)
    return [command for field, text in pairs if text and (command := _read(field, text)) is not None]


def _field(phase: Phase, command_id: str) -> str:
    return f"{phase}:{command_id}"


def _text(command: SafingCommand) -> str:
    return msgspec.json.encode(command).decode()


def _read(field: str, text: str) -> SafingCommand | None:
    try:
        return msgspec.json.decode(text, type=SafingCommand)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        logger.error("safing command unreadable", field=field, reason=str(error))
        return None
