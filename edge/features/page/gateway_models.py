"""The data of the HTTP API about the gateway itself: operations, locks, sessions, users, certificates, log, fleet."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from edge.model.certificate import PublicCertificate
from edge.model.finding import PublicHealthFinding
from edge.model.instant import Instant
from edge.model.lock import PublicLock
from edge.model.plant import PublicComponent, PublicOperation
from edge.model.user import PublicSession, PublicUser

_Text = Annotated[str, Meta(max_length=1000)]


class MaintenanceBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to switch the maintenance mode on: `now` pauses the jobs that run, else they end."""

    message: _Text = ""
    now: bool = False
    minutes: Annotated[float, Meta(ge=1, le=525_600)] | None = None


class OperationList(Struct, frozen=True, kw_only=True):
    """The operations of the store, the newest first."""

    operations: tuple[PublicOperation, ...]


class OperationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operation to schedule, now."""

    type: Literal["backup", "support-bundle", "export", "import"]


class OperationChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments are needed."""

    comment: _Text = ""


class LockList(Struct, frozen=True, kw_only=True):
    """The locks of the store."""

    locks: tuple[PublicLock, ...]


class LockDeletion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lock to delete; `force` deletes that of a living owner, too."""

    kind: Literal["equipment", "station", "job", "operation"]
    id: Annotated[str, Meta(min_length=1, max_length=255)]
    force: bool = False


class SessionOverview(Struct, frozen=True, kw_only=True):
    """The sessions of all gateways on the store, the one active last first."""

    sessions: tuple[PublicSession, ...]


class SessionEnd(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which session to end."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]


class PersonList(Struct, frozen=True, kw_only=True):
    """The users of the gateway."""

    users: tuple[PublicUser, ...]


class CertificateOverview(Struct, frozen=True, kw_only=True):
    """The certificate of the gateway, and those of OPC UA applications."""

    certificates: tuple[PublicCertificate, ...]


class TrustBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rejected certificate to trust, by its whole thumbprint."""

    thumbprint: Annotated[str, Meta(pattern=r"^[0-9A-Fa-f]{40,64}$")]


class FindingList(Struct, frozen=True, kw_only=True):
    """What `edge doctor` finds."""

    findings: tuple[PublicHealthFinding, ...]


class LogLine(Struct, frozen=True, kw_only=True):
    """A record of the log of this process."""

    at: Instant
    level: str
    text: str


class LogPage(Struct, frozen=True, kw_only=True):
    """The newest records of the log since the start of the page, the newest first."""

    lines: tuple[LogLine, ...]


class Fleet(Struct, frozen=True, kw_only=True):
    """The components on the store."""

    components: tuple[PublicComponent, ...]
