"""The security settings of the server: its certificate, the security policies, the user tokens.

- Only a trusted application can open an encrypted channel.
- A channel without encryption serves discovery only. With `security = "none"` it serves more: a local client has the
  same rights as on an encrypted channel, a remote client always has the role observer.
- A client without a user name is anonymous; the settings define the role of anonymous clients. A user name needs its
  password, and a password needs encryption.
- With `trusted_users`, a trusted certificate logs in the user with its common name; the role is that of the user.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from asyncua import ua
from asyncua.crypto.security_policies import SECURITY_POLICY_TYPE_MAP, SecurityPolicyFactory, SecurityPolicyNone
from cryptography import x509

from edge.access.audit_trail import AuditTrail, limit_of_callers
from edge.access.login import Credentials, LoginRefusal, Users
from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.opcua.access import Caller, Peer
from edge.opcua.application_certificate import chain_bytes, user_name
from edge.opcua.server_core import ServerCore
from edge.uaserver import audit, method_roles
from edge.uaserver.application_trust import RejectedList, TrustList, rejected_directory, rejected_users_directory
from edge.uaserver.certificates import OwnCertificate, thumbprint


class AccessControl:
    """The access decisions of the server by settings, trust list and users; it records every refusal."""

    def __init__(self, settings: OpcuaSettings, users: Users | None = None, trail: AuditTrail | None = None) -> None:
        self._trail = trail
        self._refusals = audit.RefusalLog(trail=trail)
        self._limit = limit_of_callers()
        self.allows_unencrypted = settings.security == "none"
        self.allows_anonymous = settings.anonymous != "nobody"
        self._anonymous = Role[settings.anonymous.upper()] if self.allows_anonymous else None
        requires = settings.revocation_lists == "required"
        self._trust = TrustList(Path(settings.trusted), requires_revocations=requires)
        self._rejected = RejectedList(rejected_directory(Path(settings.pki)))
        self.allows_certificates = bool(settings.trusted_users)
        self._trusted_users = TrustList(Path(settings.trusted_users), requires_revocations=requires)
        self._rejected_users = RejectedList(rejected_users_directory(Path(settings.pki)))
        self._security_admins = frozenset(settings.security_admins)
        self._users = users or Users(Path(settings.users_file))

    def is_application_trusted(self, chain: Sequence[x509.Certificate], address: str) -> bool:
        """Return whether the application with this certificate may open a channel; record a refusal."""
        certificate, *certificates = chain
        fault = self._trust.fault(certificate, certificates)
        if fault:
            self.record_refusal(
                "OPC UA client turned away",
                address,
                reason=fault,
                subject=certificate.subject.rfc4514_string(),
                thumbprint=thumbprint(certificate),
                advice="to trust it: edge opcua trust THUMBPRINT",
            )
        return not fault

    def anonymous(self, peer: Peer) -> Caller | None:
        """Return the caller of a session without a user name; None when the settings require one."""
        if self._anonymous is None:
            return None
        role = self._anonymous if peer.is_encrypted or peer.is_local else Role.OBSERVER
        return Caller("", role, peer.application, peer.address)

    async def user(self, name: str, password: str, peer: Peer, *, is_confirmed: bool = False) -> Caller | None:
        """Return the caller with this user name and password; None when the login is refused."""
        credentials = Credentials(name, password, peer.address, is_confirmed)
        found = await self._users.log_in(credentials) if peer.is_encrypted else LoginRefusal.WRONG
        if isinstance(found, LoginRefusal):
            self.record_refusal(
                "OPC UA login refused", peer.address, user=name, application=peer.application, reason=found.value
            )
            return None
        return Caller(name, found, peer.application, peer.address)

    async def certified_user(self, chain: Sequence[x509.Certificate], peer: Peer, *, is_proved: bool) -> Caller | None:
        """Return the caller named by the certificate; None when the login is refused.

        The certificate of a user who has its key and is not trusted is stored for the administrator.
        """
        certificate, *certificates = chain
        name = user_name(certificate)
        fault = (
            self._trusted_users.fault(certificate, certificates) if is_proved else "the signature of the user is wrong"
        )
        found = await self._users.log_in_certified(name, peer.address, fault)
        if isinstance(found, Role):
            return Caller(name, found, peer.application, peer.address, tuple(chain))
        self.record_refusal(
            "OPC UA login refused",
            peer.address,
            user=name,
            application=peer.application,
            reason=str(found),
            thumbprint=thumbprint(certificate),
        )
        if is_proved and fault:
            await self._rejected_users.keep(certificate, peer.address)
        return None

    def is_login_trusted(self, caller: Caller) -> bool:
        """Return whether the certificate that logged the caller in is trusted; True for a login without one."""
        return not caller.chain or not self._trusted_users.fault(caller.chain[0], caller.chain[1:])

    def may_call(self, caller: Caller, method: str) -> bool:
        """Return whether the caller may call the method with this browse name."""
        if method in method_roles.SECURITY_METHODS:
            return self.manages_certificates(caller)
        return method_roles.may_call(caller.role, method)

    def manages_certificates(self, caller: Caller) -> bool:
        """Return whether the caller may change certificates and trust lists over OPC UA."""
        return caller.role >= Role.ENGINEER and caller.name in self._security_admins

    def record_login(self, caller: Caller) -> None:
        """Record that a session was activated."""
        if self._limit.try_acquire(caller.name):
            audit.record_login(caller, self._trail)

    def record_call(
        self, caller: Caller, method: str, request: ua.CallMethodRequest, result: ua.CallMethodResult
    ) -> None:
        """Record a method call; a refused one, or one that reads, unless the caller had too many of them."""
        is_change = not (audit.is_without_effect(result) or method_roles.is_for_observers(method))
        if is_change or self._limit.try_acquire(caller.name):
            audit.record_call(caller, method, request, result, self._trail)

    def record_refusal(self, event: str, address: str, **fields: object) -> None:
        """Record that a client was refused."""
        self._refusals.record(event, address, **fields)

    async def keep_rejected(self, certificate: x509.Certificate, address: str) -> None:
        """Store the certificate of a rejected application for the administrator."""
        await self._rejected.keep(certificate, address)


# Without encryption the job data would be readable in the network; the older policies are broken.
_POLICIES = (
    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
    ua.SecurityPolicyType.Aes128Sha256RsaOaep_SignAndEncrypt,
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
)
_PROFILE = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary"


def serve_certificate(core: ServerCore, own: OwnCertificate) -> None:
    """Use a certificate with its chain for every channel that opens from now on, and in the endpoint descriptions."""
    core.certificate, core.private_key = own.certificate, own.key
    for factory in core.policies:
        factory.certificate, factory.private_key = own.certificate, own.key
        factory.certificate_chain = own.authorities
    for endpoint in core.endpoints:
        endpoint.ServerCertificate = chain_bytes(own.chain)


def configure_security(
    core: ServerCore, settings: OpcuaSettings, own: OwnCertificate, application: ua.ApplicationDescription
) -> None:
    """Offer the security policies that the settings allow, with the user tokens that each takes."""
    plain = (ua.SecurityPolicyType.NoSecurity,) if settings.security == "none" else ()
    (url,) = application.DiscoveryUrls
    for name in (*_POLICIES, *plain):
        policy, mode, level = SECURITY_POLICY_TYPE_MAP[name]
        core.policies.append(SecurityPolicyFactory(policy, mode))
        endpoint = ua.EndpointDescription(
            EndpointUrl=url,
            Server=application,
            SecurityMode=mode,
            SecurityPolicyUri=policy.URI,
            UserIdentityTokens=list(_tokens(settings, policy.URI, is_encrypted=name in _POLICIES)),
            TransportProfileUri=_PROFILE,
            SecurityLevel=level,
        )
        core.add_endpoint(endpoint)
    serve_certificate(core, own)


def _tokens(settings: OpcuaSettings, policy_uri: str, *, is_encrypted: bool) -> Iterator[ua.UserTokenPolicy]:
    if settings.anonymous != "nobody":
        yield _token("anonymous", ua.UserTokenType.Anonymous, SecurityPolicyNone.URI)
    if settings.trusted_users and is_encrypted:
        yield _token("certificate", ua.UserTokenType.Certificate, policy_uri)
    if is_encrypted:
        # The password is also encrypted with the server's last nonce: only this server can read it, and a replay fails.
        yield _token("username", ua.UserTokenType.UserName, policy_uri)


def _token(name: str, kind: ua.UserTokenType, policy_uri: str) -> ua.UserTokenPolicy:
    return ua.UserTokenPolicy(PolicyId=name, TokenType=kind, SecurityPolicyUri=policy_uri)
