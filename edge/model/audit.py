"""Records of the audit trail: who did what, from where, with which result; and their chain of digests."""

from typing import Final, Literal

from msgspec import Struct

from edge.model.instant import Instant, rfc3339

AuditKind = Literal[
    "opcua.call",
    "opcua.login",
    "opcua.refused",
    "mes.call",
    "rpc.call",
    "cli.call",
    "cli.login",
    "web.call",
    "web.login",
    "web.refused",
    "fleet.call",
    "station.fill",
    "audit.lost",
]
"""By which interface a record came; `station.fill`: an empty store was filled from files; `audit.lost`:
how many records could not be written."""

MAX_TEXT: Final = 1000
"""The limit of each text in characters: some of them come from clients."""


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call, login or refusal.

    `at` is in milliseconds since the epoch. `user` is the user of OPC UA or of the system, or the `source` of a
    CloudEvent; `address` the network address or topic. `action` is the method, `subject` its job, equipment, alarm or
    other object, `status` its result. `keep`
    is how many records the store kept at least when this one was written.
    """

    at: int
    kind: AuditKind
    instance: str
    user: str
    action: str
    subject: str = ""
    status: str = ""
    comment: str = ""
    role: str = ""
    application: str = ""
    address: str = ""
    keep: int = 0


class SealedRecord(Struct, frozen=True):
    """A stored record: its number from 1 on, its text as JSON, and the digest of it and of all before it."""

    number: int
    digest: str
    text: str


class PublicAuditRecord(Struct, frozen=True, kw_only=True):
    """An AuditRecord as `--json` states it, with its number and digest; `client` is the `application` of the record."""

    number: int
    digest: str
    at: Instant
    kind: AuditKind
    gateway: str
    user: str
    role: str
    address: str
    client: str
    action: str
    subject: str
    comment: str
    status: str


class UnreadableRecord(Struct, frozen=True, kw_only=True):
    """A stored record that cannot be read, with its text."""

    number: int
    digest: str
    unreadable: str


def public_record(sealed: SealedRecord, record: AuditRecord | None) -> PublicAuditRecord | UnreadableRecord:
    """Return the public form of a record; `record` is its content, None where it cannot be read."""
    if record is None:
        return UnreadableRecord(number=sealed.number, digest=sealed.digest, unreadable=sealed.text)
    return PublicAuditRecord(
        number=sealed.number,
        digest=sealed.digest,
        at=rfc3339(record.at),
        kind=record.kind,
        gateway=record.instance,
        user=record.user,
        role=record.role,
        address=record.address,
        client=record.application,
        action=record.action,
        subject=record.subject,
        comment=record.comment,
        status=record.status,
    )


class ChainHead(Struct, frozen=True):
    """Number and digest of the newest record; number 0 before the first."""

    number: int
    digest: str
