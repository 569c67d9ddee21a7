"""Who is let in, and as whom: the rule that ties channels, certificates, users and roles together.

- An encrypted channel is opened to applications we trust only.
- A channel without encryption serves discovery. Where the settings allow more (`security = "none"`), whoever comes from
  this host is taken as on an encrypted channel; whoever comes from elsewhere may look, and is never more than that.
- No name is anonymous, which the settings give a role. A name needs its password, and passwords need encryption.
"""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from edge.config import OpcuaSettings
from edge.uaserver import audit
from edge.uaserver.certificates import thumbprint
from edge.uaserver.roles import Caller, Role
from edge.uaserver.trust import RejectedList, TrustList, rejected_directory
from edge.uaserver.users import LoginRefusal, Users


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a channel: where it is, whether the channel is encrypted, what application it proved to be."""

    address: str
    is_encrypted: bool
    application: str = ""

    @property
    def is_local(self) -> bool:
        """Tell whether it is on this host."""
        try:
            address = ipaddress.ip_address(self.address)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback


class AccessControl:
    """Decides by the settings, the trust list and the users; what it refuses it records."""

    def __init__(self, settings: OpcuaSettings, users: Users | None = None) -> None:
        self.refusals = audit.RefusalLog()
        self.allows_unencrypted = settings.security == "none"
        self.allows_anonymous = settings.anonymous != "nobody"
        self._anonymous = Role[settings.anonymous.upper()] if self.allows_anonymous else None
        self._trust = TrustList(Path(settings.trusted))
        self.rejected = RejectedList(rejected_directory(Path(settings.pki)))
        self._users = users or Users(Path(settings.users_file))

    def is_application_trusted(self, certificate: x509.Certificate, address: str) -> bool:
        """Tell whether the application with this certificate may open a channel; record if it may not."""
        fault = self._trust.fault(certificate)
        if fault:
            self.refusals.tell(
                "OPC UA client turned away",
                address,
                reason=fault,
                subject=certificate.subject.rfc4514_string(),
                thumbprint=thumbprint(certificate),
                advice="to trust it: edge opcua trust THUMBPRINT",
            )
        return not fault

    def anonymous(self, peer: Peer) -> Caller | None:
        """Say who somebody without a name is; None when they have to have one."""
        if self._anonymous is None:
            return None
        role = self._anonymous if peer.is_encrypted or peer.is_local else Role.OBSERVER
        return Caller("", role, peer.application, peer.address)

    async def user(self, name: str, password: str, peer: Peer) -> Caller | None:
        """Say who the user of this name and password is; None when there is no such user."""
        found = await self._users.log_in(name, password, peer.address) if peer.is_encrypted else LoginRefusal.WRONG
        if isinstance(found, LoginRefusal):
            self.refusals.tell(
                "OPC UA login refused", peer.address, user=name, application=peer.application, reason=found.value
            )
            return None
        return Caller(name, found, peer.application, peer.address)
