"""The security settings of the server: its certificate, the security policies, the user tokens."""

from collections.abc import Iterable

from asyncua import Server, ua

from edge.config import OpcuaSettings
from edge.opcua.application_certificate import chain_bytes
from edge.opcua.negotiated_limits import NegotiatedLimits
from edge.opcua.server_core import AllowedServices
from edge.uaserver.certificates import OwnCertificate

# Without encryption the job data would be readable in the network; the older policies are broken.
_POLICIES = (
    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
    ua.SecurityPolicyType.Aes128Sha256RsaOaep_SignAndEncrypt,
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
)


def configure_security(server: Server, settings: OpcuaSettings, own: OwnCertificate) -> None:
    """Configure the security policies that the settings allow; call it before the server starts."""
    server.limits = NegotiatedLimits()
    server.iserver.certificate = own.certificate
    server.iserver.private_key = own.key
    plain = (ua.SecurityPolicyType.NoSecurity,) if settings.security == "none" else ()
    server.set_security_policy([*_POLICIES, *plain], permission_ruleset=AllowedServices())


def serve_certificate(server: Server, own: OwnCertificate) -> None:
    """Use a certificate with its chain for every channel that opens from now on, and in the endpoint descriptions."""
    server.iserver.certificate = own.certificate
    server.iserver.private_key = own.key
    # The connections share these objects; asyncua sets no chain.
    for factory in server._policies:  # noqa: SLF001 - asyncua has no other way to change it
        factory.certificate, factory.private_key = own.certificate, own.key
        factory.certificate_chain = own.authorities
    for endpoint in server.iserver.endpoints:
        endpoint.ServerCertificate = chain_bytes(own.chain)


def correct_endpoints(endpoints: Iterable[ua.EndpointDescription], url: str, *, allows_anonymous: bool) -> None:
    """Correct the endpoint descriptions of asyncua: the URL and the accepted user tokens."""
    for endpoint in endpoints:
        # asyncua builds the descriptions before it knows the port, if the port is chosen by the system.
        endpoint.EndpointUrl = url
        endpoint.Server.DiscoveryUrls = [url]
        is_encrypted = endpoint.SecurityMode == ua.MessageSecurityMode.SignAndEncrypt
        wanted = {
            ua.UserTokenType.Anonymous: allows_anonymous,
            ua.UserTokenType.UserName: is_encrypted,
            ua.UserTokenType.Certificate: is_encrypted,
        }
        endpoint.UserIdentityTokens = [value for value in endpoint.UserIdentityTokens if wanted[value.TokenType]]
        for token in endpoint.UserIdentityTokens:
            if token.TokenType == ua.UserTokenType.UserName:
                # The password is also encrypted with the server's last nonce: only this server can read it, and a
                # replay fails.
                token.SecurityPolicyUri = endpoint.SecurityPolicyUri
