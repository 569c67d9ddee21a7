"""What the server offers to clients: its certificate, the security policies, the ways to say who one is."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import structlog
from asyncua import Server, ua
from cryptography import x509

from edge.config import OpcuaSettings
from edge.opcua.negotiated_limits import NegotiatedLimits
from edge.opcua.server_core import AllowedServices
from edge.uaserver import certificates
from edge.uaserver.certificates import OwnCertificate

logger = structlog.get_logger(__name__)

# Signing alone would show everybody on the wire what we make; the older policies are broken.
_POLICIES = (
    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
    ua.SecurityPolicyType.Aes128Sha256RsaOaep_SignAndEncrypt,
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
)
_DAY_S = 24 * 60 * 60


def configure_security(server: Server, settings: OpcuaSettings, own: OwnCertificate) -> None:
    """Have the server offer what the settings allow, before it starts."""
    server.limits = NegotiatedLimits()
    server.iserver.certificate = own.certificate
    server.iserver.private_key = own.key
    plain = (ua.SecurityPolicyType.NoSecurity,) if settings.security == "none" else ()
    server.set_security_policy([*_POLICIES, *plain], permission_ruleset=AllowedServices())


def correct_endpoints(endpoints: Iterable[ua.EndpointDescription], url: str, *, allows_anonymous: bool) -> None:
    """Put right what asyncua tells of the endpoints: where they are, and how one says there who one is."""
    for endpoint in endpoints:
        # asyncua described them before it knew its port, when it was asked for any that is free.
        endpoint.EndpointUrl = url
        endpoint.Server.DiscoveryUrls = [url]
        is_encrypted = endpoint.SecurityMode == ua.MessageSecurityMode.SignAndEncrypt
        wanted = {ua.UserTokenType.Anonymous: allows_anonymous, ua.UserTokenType.UserName: is_encrypted}
        endpoint.UserIdentityTokens = [each for each in endpoint.UserIdentityTokens if wanted[each.TokenType]]
        for token in endpoint.UserIdentityTokens:
            if token.TokenType == ua.UserTokenType.UserName:
                # Encrypted once more with our last nonce, so that a password is ours to read and never played again.
                token.SecurityPolicyUri = endpoint.SecurityPolicyUri


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def watch_certificate(
    certificate: x509.Certificate, application_uri: str, now: Callable[[], datetime] = _utc_now
) -> None:
    """Warn every day of what will make clients turn away from our certificate, until cancelled."""
    while True:
        for warning in certificates.warnings(certificate, application_uri, now()):
            logger.warning(
                "our OPC UA certificate has to be renewed", reason=warning, advice="edge opcua renew, then restart"
            )
        await asyncio.sleep(_DAY_S)
