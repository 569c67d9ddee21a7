"""Administration at the station page and in the HTTP API: equipment, refused messages, dead letters, audit trail."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from edge.access.audit_reading import VerifiedChain, find_records, verify_chain
from edge.access.instances import EquipmentView, equipment_views, load_reports
from edge.access.web_audit import WebCaller
from edge.app.page_part import AdminLink, ApiCall, ApiOperation, PageData, PagePart, PageServices
from edge.app.redaction import PublicRefused, public_refused, redactor, secrets_of, without_secrets
from edge.config import main_file
from edge.features.admin import backup_page, user_page
from edge.features.admin.administration import administration, recorded
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.audit import PublicAuditRecord, public_record
from edge.model.equipment_health import PublicEquipment
from edge.model.isa95 import ReleasedStop
from edge.model.user import Role
from edge.station.intervene import ReleaseRequest, release
from edge.station.manual_retry import retry_letter
from edge.station.public_letter import (
    PublicLetter,
    can_retry,
    drop_letters,
    find_letter,
    public_letter,
    retry_effect,
    subject_of,
)
from edge.store.dead_letters import DECLINED_COUNTER, Letter, count_refused, load_all, newest_refused

_SOURCE: Final = "urn:microdcs-edge:page"
_ROWS_OF_PAGE: Final = 50
_MOST_ROWS: Final = 1000
_AUDIT_QUERY: Final = {
    "user": "A user or a source.",
    "subject": "A job, equipment or alarm.",
    "kind": "`opcua.call`, `mes.call`, `cli.call`, `web.call`, …",
    "last": f"The most records, at most {_MOST_ROWS}.",
}


class ReleaseBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tool was made safe; with `command_id` the stops and resets of one command only."""

    reason: Annotated[str, Meta(max_length=1000)]
    command_id: Annotated[str, Meta(max_length=255)] | None = None


class ReleasedStops(Struct, frozen=True, kw_only=True):
    """The stops and resets that are not sent any more."""

    released: tuple[ReleasedStop, ...]


class RefusedList(Struct, frozen=True, kw_only=True):
    """Refused messages and declined calls, the newest first, and how many there were since the store was created."""

    messages: tuple[PublicRefused, ...]
    refused: int
    declined: int


class LetterList(Struct, frozen=True, kw_only=True):
    """The dead letters, the oldest first."""

    letters: tuple[PublicLetter, ...]


class LetterChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letter."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]


class AuditList(Struct, frozen=True, kw_only=True):
    """Records of the audit trail, the newest first; `unreadable` counts those that cannot be read."""

    records: tuple[PublicAuditRecord, ...]
    unreadable: int


async def _views(services: PageServices) -> Sequence[EquipmentView]:
    scopes = administration(services).settings.gateway.scopes
    return equipment_views(await load_reports(services.store, scopes))


async def _release(services: PageServices, call: ApiCall) -> ReleasedStops:
    settings, caller, name = administration(services).settings, call.caller, call.path["equipment"]
    body: ReleaseBody = call.body
    section = settings.southbound.get(name)
    request = ReleaseRequest(
        equipment=name,
        scopes=settings.gateway.scopes,
        command_id=body.command_id,
        by=caller.user,
        reason=body.reason,
        source=_SOURCE,
        event_id=f"{caller.user}/{call.id}",
    )
    type_ids = {name: section.type_ids} if section else {}
    with recorded(services, caller, "equipment release", body.command_id or name, body.reason):
        released = await release(services.store, type_ids, request, settings.retention.dedupe * 1000)
    services.notify("station")
    return ReleasedStops(released=tuple(released))


async def _refused(services: PageServices, last: int, language: str) -> RefusedList:
    opened = administration(services)
    redact = redactor(secrets_of(opened.settings, main_file(opened.settings_file, os.environ), os.environ))
    messages = await newest_refused(services.store, last)
    return RefusedList(
        messages=tuple(public_refused(without_secrets(message, redact), language) for message in messages),
        refused=await count_refused(services.store),
        declined=await count_refused(services.store, DECLINED_COUNTER),
    )


async def _list_refused(services: PageServices, call: ApiCall) -> RefusedList:
    return await _refused(services, _last_of(call.query), call.caller.language)


async def _list_letters(services: PageServices, call: ApiCall) -> LetterList:
    letters = await load_all(services.store)
    return LetterList(letters=tuple(public_letter(id, letter, call.caller.language) for id, letter in letters.items()))


async def _retry(services: PageServices, call: ApiCall) -> LetterList:
    letter_id = call.body.id
    with recorded(services, call.caller, "dead-letters retry", letter_id):
        await retry_letter(services.store, letter_id, await find_letter(services.store, letter_id), services.clock)
    return await _list_letters(services, call)


async def _drop(services: PageServices, call: ApiCall) -> LetterList:
    with recorded(services, call.caller, "dead-letters drop", call.body.id):
        await drop_letters(services.store, (call.body.id,))
    return await _list_letters(services, call)


def _last_of(query: Mapping[str, str], usual: int = _ROWS_OF_PAGE) -> int:
    text = query.get("last", "") or str(usual)
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:5]) <= _MOST_ROWS):
        raise Refused("invalid_query", Text.of("last is a number up to {most}.", most=_MOST_ROWS), "As in last=50.")
    return int(text[:5])


async def _records(services: PageServices, query: Mapping[str, str]) -> AuditList:
    wanted = {name: text for name in ("user", "subject", "kind") if (text := query.get(name, "").strip())}
    pairs = await find_records(services.store, _last_of(query), wanted)
    records = [public_record(sealed, record) for sealed, record in reversed(pairs)]
    readable = tuple(record for record in records if isinstance(record, PublicAuditRecord))
    return AuditList(records=readable, unreadable=len(records) - len(readable))


async def _list_audit(services: PageServices, call: ApiCall) -> AuditList:
    return await _records(services, call.query)


async def _verify(services: PageServices, _: ApiCall) -> VerifiedChain:
    return await verify_chain(services.store)


def _is_faulty(device: PublicEquipment) -> bool:
    return bool(device.safing or device.problem or device.connected is False or not device.gateway_at_work)


def _is_bad(device: PublicEquipment) -> bool:
    """Return whether equipment is known to be at fault; without a connection its state is unknown."""
    is_known = device.connected is not False and device.gateway_at_work
    return bool(device.safing or (device.problem and is_known))


async def _equipment_page(services: PageServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    opened = administration(services)
    devices = [view.public(caller.language) for view in await _views(services)]
    # What needs a person stands first.
    devices.sort(key=lambda device: not _is_faulty(device))
    return "equipment.html", {
        "equipment": [(device, _is_bad(device), opened.waiting_for(device.name)) for device in devices],
        "own": set(opened.settings.southbound),
        "subjects": ["station"],
    }


def _described(letter: Letter, language: str) -> tuple[str, str]:
    """Return what a letter is about, and what a retry does."""
    return subject_of(letter).in_language(language), retry_effect(letter).in_language(language)


async def _messages_page(services: PageServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    letters = await load_all(services.store)
    newest = list(letters.items())[-_ROWS_OF_PAGE:]
    rows = [(public_letter(id, letter, caller.language), *_described(letter, caller.language)) for id, letter in newest]
    return "messages.html", {
        "letters": rows,
        "retryable": {id for id, letter in letters.items() if can_retry(letter)},
        "refused": await _refused(services, _ROWS_OF_PAGE, caller.language),
        "subjects": ["messages"],
    }


async def _audit_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    return "audit.html", {
        "page": await _records(services, query),
        "given": {name: query.get(name, "") for name in ("user", "subject", "kind")},
        "chain": await verify_chain(services.store) if query.get("verify") else None,
        "subjects": [],
    }


PAGE: Final = PagePart(
    (
        ApiOperation(
            "POST",
            "/equipment/{equipment}/release",
            "Release stops and resets that the equipment has not confirmed, after it was made safe by hand.",
            Role.OPERATOR,
            ReleasedStops,
            _release,
            ReleaseBody,
        ),
        ApiOperation(
            "GET",
            "/refused",
            "List refused messages and declined calls, without secrets.",
            Role.ENGINEER,
            RefusedList,
            _list_refused,
            query={"last": _AUDIT_QUERY["last"]},
        ),
        ApiOperation("GET", "/dead-letters", "List the dead letters.", Role.ENGINEER, LetterList, _list_letters),
        ApiOperation(
            "POST",
            "/dead-letters/retry",
            "Retry the work of a dead letter, and drop the letter.",
            Role.ENGINEER,
            LetterList,
            _retry,
            LetterChange,
        ),
        ApiOperation(
            "POST", "/dead-letters/drop", "Drop a dead letter.", Role.ENGINEER, LetterList, _drop, LetterChange
        ),
        ApiOperation(
            "GET",
            "/audit",
            "List the newest records of the audit trail.",
            Role.ENGINEER,
            AuditList,
            _list_audit,
            query=_AUDIT_QUERY,
        ),
        ApiOperation(
            "GET", "/audit/verify", "Verify the chain of the audit trail.", Role.ENGINEER, VerifiedChain, _verify
        ),
        *user_page.OPERATIONS,
        *backup_page.OPERATIONS,
    ),
    pages={
        "/equipment": _equipment_page,
        "/messages": _messages_page,
        "/audit": _audit_page,
        "/users": user_page.users_page,
        "/backups": backup_page.backups_page,
    },
    administration=(
        AdminLink("/equipment", "equipment", "observer"),
        AdminLink("/messages", "messages", "engineer"),
        AdminLink("/audit", "audit_trail", "engineer"),
        AdminLink("/users", "users", "engineer"),
        AdminLink("/backups", "backups", "engineer"),
    ),
    templates=Path(__file__).parent / "templates",
    manual={
        "/equipment": "how-to/troubleshooting#it-runs-and-something-is-unavailable",
        "/messages": "how-to/troubleshooting#a-message-is-refused",
        "/audit": "reference/cli#edge-audit",
        "/users": "how-to/users#at-the-station-page",
        "/backups": "how-to/backup",
    },
)
