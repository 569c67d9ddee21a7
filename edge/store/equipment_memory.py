"""What the store keeps about equipment: memory beyond a restart, disabled tools, reports, stops not confirmed."""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from edge.foundation.text import Text
from edge.model.equipment_health import EquipmentReport
from edge.sfc.signal import Phase
from edge.store.client import Store
from edge.store.commit import Commit, operation, spread
from edge.store.keys import Keys


async def load_memory(store: Store, equipment: str) -> dict[str, str]:
    """Return the texts of a piece of equipment; empty for one that is new."""
    texts: dict[str, str] = await store.execute("HGETALL", store.keys.equipment_memory(equipment))
    return texts


async def save_memory(store: Store, equipment: str, texts: Mapping[str, str]) -> None:
    """Write these texts; the others stay. Writes nothing for an empty mapping."""
    if texts:
        fields = [part for field in texts.items() for part in field]
        await store.commit(operation("HSET", store.keys.equipment_memory(equipment), *fields))


async def keep_disabled(store: Store, place: str, since: int | None) -> None:
    """Keep that a tool is disabled since an instant, in milliseconds since the epoch; None: it is not disabled."""
    key = store.keys.disabled_tools()
    change = operation("HDEL", key, place) if since is None else operation("HSET", key, place, str(since))
    await store.commit(change)


async def is_disabled(store: Store, place: str) -> bool:
    """Return whether another system has disabled the tool at a place."""
    return bool(await store.execute("HEXISTS", store.keys.disabled_tools(), place))


REPORT_LIFETIME_MS = 86_400_000
"""How long a report is kept after it was written."""


def save_report(keys: Keys, consumer: str, report: EquipmentReport) -> Commit:
    """Write the report of a gateway and replace its last one."""
    return operation("SET", keys.health(consumer), msgspec.json.encode(report).decode(), "PX", REPORT_LIFETIME_MS)


async def load_reports(store: Store, consumers: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the last reports of these gateways; None for a gateway without a report."""
    texts = await store.read([("GET", store.keys.health(consumer)) for consumer in consumers])
    return {name: _report(text) for name, text in zip(consumers, texts, strict=True)}


async def load_registered_reports(store: Store, scopes: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the reports of the gateways that are registered for these scopes, by name."""
    members = await store.read([("SMEMBERS", store.keys.instances(scope)) for scope in scopes])
    return await load_reports(store, sorted(set().union(*members)))


def _report(text: str | None) -> EquipmentReport | None:
    try:
        return msgspec.json.decode(text, type=EquipmentReport) if text else None
    except (msgspec.DecodeError, RecursionError):
        # Another version may have written it; the next report replaces it.
        return None


logger = structlog.get_logger(__name__)


class SafingCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A stop or a reset with all that it takes to send it again.

    It is due `since` an instant, in milliseconds since the epoch.

    `error` says why the equipment declined it, in English; `error_text` has the same with its values. `released_by` is
    the operator who has made the tool safe by hand, and `release_reason` what the operator has seen: it is not sent any
    more.
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
    error_text: Text | None = None
    released_by: str = ""
    release_reason: str = ""
    causation_id: str = ""
    trace: dict[str, str] = {}


def save_safing(keys: Keys, command: SafingCommand) -> Commit:
    """Keep a command until it is confirmed or released."""
    return operation("HSET", keys.safing(), _field(command.phase, command.command_id), _text(command))


def remove_safing(keys: Keys, command_id: str) -> Commit:
    """Remove the stop and the reset of a command id: confirmed by the equipment, or released by an operator."""
    return spread("HDEL", (keys.safing(),), (_field(phase, command_id) for phase in (Phase.STOP, Phase.RESET)))


async def load_all_safing(store: Store) -> list[SafingCommand]:
    """Return every command that is not confirmed, the oldest first; one that cannot be read is logged and left out."""
    stored: dict[str, str] = await store.execute("HGETALL", store.keys.safing())
    safing_commands = [command for field, text in stored.items() if (command := _read(field, text)) is not None]
    return sorted(safing_commands, key=lambda safing_command: (safing_command.since, safing_command.command_id))


async def load_safing(store: Store, command_id: str) -> list[SafingCommand]:
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
