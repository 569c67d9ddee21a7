"""Clients for the security tests: applications with certificates, and connections opened step by step."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicy, SecurityPolicyBasic256Sha256

from edge.access.users import User, write_user
from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.uaserver import certificates
from tests.opcua_client import patient_client
from tests.passwords import CHEAP_HASH, PASSWORD
from tests.uaserver.running import SETTINGS


@dataclass(frozen=True, slots=True)
class Application:
    """A client application with its certificate."""

    uri: str
    directory: Path

    @property
    def certificate(self) -> bytes:
        return (self.directory / "own.der").read_bytes()

    def trusted_by(self, settings: OpcuaSettings) -> None:
        directory = Path(settings.trusted)
        directory.mkdir(exist_ok=True)
        (directory / f"{self.directory.name}.der").write_bytes(self.certificate)

    def trusted_by_nobody(self, settings: OpcuaSettings) -> None:
        Path(settings.trusted, f"{self.directory.name}.der").unlink()


def make_application(directory: Path) -> Application:
    uri = f"urn:test:{directory.name}"
    certificates.load_or_make(directory, uri, ("localhost",))
    return Application(uri, directory)


def make_settings(directory: Path, **others: str) -> OpcuaSettings:
    """Return the default settings with other paths and port; all tests share the server's certificate."""
    return OpcuaSettings(
        endpoint=SETTINGS.endpoint,
        pki=SETTINGS.pki,
        trusted=str(directory / "trusted"),
        users_file=str(directory / "users"),
        **others,  # type: ignore[arg-type]
    )


def with_users(settings: OpcuaSettings) -> OpcuaSettings:
    """Add one user per role, named after it; return a copy of the settings."""
    for role in Role:
        write_user(Path(settings.users_file), User(role.name.lower(), role, CHEAP_HASH))
    return msgspec.structs.replace(settings)


def own_certificate() -> bytes:
    """Return the certificate of all test servers."""
    return Path(SETTINGS.pki, "own.der").read_bytes()


async def prepared(
    endpoint: str,
    application: Application,
    policy: type[SecurityPolicy] = SecurityPolicyBasic256Sha256,
    mode: ua.MessageSecurityMode = ua.MessageSecurityMode.SignAndEncrypt,
    server: bytes = b"",
) -> Client:
    """Return a client that is not connected yet."""
    client = patient_client(endpoint)
    client.application_uri = application.uri
    files = application.directory / "own.der", application.directory / "own.pem"
    await client.set_security(policy, *files, server_certificate=server or own_certificate(), mode=mode)
    return client


@contextlib.asynccontextmanager
async def connected(
    endpoint: str,
    application: Application,
    policy: type[SecurityPolicy] = SecurityPolicyBasic256Sha256,
    user: str = "",
    password: str = PASSWORD,
) -> AsyncIterator[Client]:
    client = await prepared(endpoint, application, policy)
    if user:
        client.set_user(user)
        client.set_password(password)
    async with client:
        yield client


@contextlib.asynccontextmanager
async def channel(client: Client) -> AsyncIterator[Client]:
    """Open a secure channel of a client, without a session."""
    await client.connect_socket()
    try:
        await client.send_hello()
        await client.open_secure_channel()
        yield client
    finally:
        client.disconnect_socket()


def signature_of(client: Client) -> ua.SignatureData:
    """Return the signature that proves that the client has the key of its certificate."""
    policy = client.security_policy
    signed = policy.asymmetric_cryptography.signature(policy.peer_certificate + client._server_nonce)  # noqa: SLF001
    return ua.SignatureData(policy.AsymmetricSignatureURI, signed)


async def serves(client: Client) -> bool:
    """Return whether the server answers this client."""
    state = await client.get_node(ua.ObjectIds.Server_ServerStatus_State).read_value()
    return bool(state == ua.ServerState.Running)
