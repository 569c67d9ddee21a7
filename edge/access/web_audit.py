"""Writes the records of requests over HTTP to the audit trail, with their caller, bounded for what has no effect."""

from typing import Final

from msgspec import Struct

from edge.access.audit_trail import AuditTrail, limit_of_callers
from edge.foundation.errors import Refused
from edge.foundation.text import Text, language_for
from edge.model.audit import AuditKind, AuditRecord
from edge.model.user import Role

_REFUSALS: Final = 20
_ANYBODY: Final = ""
"""Who is refused at the login: the name is not proved, so that all share a limit. A role is refused to one user."""


class WebCaller(Struct, frozen=True):
    """The sender of a request. `session` is empty for a token and in the kiosk mode, `user` in the kiosk mode.

    `at_panel`: the request comes from a panel at the station.
    """

    user: str
    role: Role
    address: str
    languages: tuple[str, ...]
    session: str = ""
    client: str = ""
    at_panel: bool = False

    @property
    def language(self) -> str:
        """The language in which the sender reads texts."""
        return language_for(self.languages)

    def require(self, role: Role) -> None:
        """Raise Refused(`forbidden`) unless the sender has this role, or a higher one."""
        if self.role < role:
            needed = Text.of("this needs the role {needed}.", needed=role.text)
            raise Refused("forbidden", needed, "Log in as a user with this role.")

    @property
    def at_page(self) -> Text:
        """The person and the place, for the reason of a stop."""
        return Text.of("{user} at the station page", user=self.user or Text.of("a person"))


class WebAudit:
    """Records calls, logins and refusals; a client that is refused often must not displace other records."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail
        self._refusals = limit_of_callers(_REFUSALS)
        self._users = limit_of_callers()

    @property
    def trail(self) -> AuditTrail:
        """The trail, for records that are in the commit of their change."""
        return self._trail

    def record_of(self, caller: WebCaller, action: str, subject: str, comment: str) -> AuditRecord:
        """Return the record of a change, for the commit of this change."""
        return self._made(
            "web.call", caller.user, caller.role, caller.address, caller.client, action, "Good", subject, comment
        )

    def called(self, caller: WebCaller, action: str, subject: str, comment: str, refusal: str = "") -> None:
        """Record a call; one that was refused only within a limit."""
        if not refusal or self._users.try_acquire(caller.user):
            status = refusal or "Good"
            record = self._made(
                "web.call", caller.user, caller.role, caller.address, caller.client, action, status, subject, comment
            )
            self._trail.record(record)

    def logged_in(self, user: str, role: Role, address: str, client: str, way: str) -> None:
        """Record a login within the limit of the user; `way` is how the person was known, such as `PIN`."""
        if self._users.try_acquire(user):
            self._trail.record(self._made("web.login", user, role, address, client, "login", "Good", comment=way))

    def refused(self, user: str, address: str, client: str, action: str, reason: str) -> None:
        """Record a refused login within a limit."""
        if self._refusals.try_acquire(_ANYBODY):
            self._trail.record(self._made("web.refused", user, None, address, client, action, reason))

    def refused_role(self, caller: WebCaller, action: str) -> None:
        """Record a call that needs another role, within the limit of the user."""
        if self._users.try_acquire(caller.user):
            record = self._made("web.refused", caller.user, None, caller.address, caller.client, action, "role")
            self._trail.record(record)

    def _made(
        self,
        kind: AuditKind,
        user: str,
        role: Role | None,
        address: str,
        client: str,
        action: str,
        status: str,
        subject: str = "",
        comment: str = "",
    ) -> AuditRecord:
        return AuditRecord(
            at=self._trail.clock(),
            kind=kind,
            instance=self._trail.instance,
            user=user,
            role=role.name.lower() if role else "",
            address=address,
            application=client,
            action=action,
            subject=subject,
            comment=comment,
            status=status,
        )
