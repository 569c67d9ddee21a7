"""The security of a new installation: encryption, the server's certificate, and no access for unknown clients."""

import contextlib
from pathlib import Path

import pytest
from asyncua import Client, ua
from asyncua.crypto import security_policies as policies
from asyncua.crypto.uacrypto import x509_from_der

from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.opcua.application_certificate import application_uris
from edge.uaserver import certificates
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.passwords import PASSWORD
from tests.uaserver.clients import (
    Application,
    connected,
    make_application,
    make_settings,
    prepared,
    serves,
    signature_of,
    with_users,
)
from tests.uaserver.running import MACHINES, SETTINGS, Space, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

OFFERED = (
    policies.SecurityPolicyBasic256Sha256,
    policies.SecurityPolicyAes128Sha256RsaOaep,
    policies.SecurityPolicyAes256Sha256RsaPss,
)


async def offered(secure: UaServer) -> list[ua.EndpointDescription]:
    """Return the endpoints, read without encryption as by every client at first."""
    endpoints: list[ua.EndpointDescription] = await patient_client(secure.endpoint).connect_and_get_server_endpoints()
    return endpoints


async def test_endpoints_are_listed_for_every_client_and_all_encrypted(secure: UaServer) -> None:
    endpoints = await offered(secure)
    assert {endpoint.SecurityPolicyUri for endpoint in endpoints} == {policy.URI for policy in OFFERED}
    assert {endpoint.SecurityMode for endpoint in endpoints} == {ua.MessageSecurityMode.SignAndEncrypt}


async def test_endpoints_offer_the_certificate_of_the_server(secure: UaServer) -> None:
    for endpoint in await offered(secure):
        certificate = x509_from_der(endpoint.ServerCertificate)
        assert application_uris(certificate) == [endpoint.Server.ApplicationUri]


async def test_user_token_policy_requires_encrypted_passwords(secure: UaServer) -> None:
    for endpoint in await offered(secure):
        tokens = {token.TokenType: token for token in endpoint.UserIdentityTokens}
        assert tokens.keys() == {ua.UserTokenType.Anonymous, ua.UserTokenType.UserName}
        assert tokens[ua.UserTokenType.UserName].SecurityPolicyUri == endpoint.SecurityPolicyUri


@pytest.mark.parametrize("policy", OFFERED)
async def test_trusted_application_connects_with_every_policy(
    secure: UaServer, friend: Application, policy: type[policies.SecurityPolicy]
) -> None:
    for user in ("", "operator"):
        async with connected(secure.endpoint, friend, policy, user) as client:
            assert await serves(client)


@pytest.mark.parametrize(
    ("policy", "mode"),
    [
        (policies.SecurityPolicyBasic256Sha256, ua.MessageSecurityMode.Sign),
        (policies.SecurityPolicyBasic128Rsa15, ua.MessageSecurityMode.SignAndEncrypt),
        (policies.SecurityPolicyBasic256, ua.MessageSecurityMode.SignAndEncrypt),
    ],
)
async def test_security_policy_that_is_not_offered_is_refused(
    secure: UaServer, friend: Application, policy: type[policies.SecurityPolicy], mode: ua.MessageSecurityMode
) -> None:
    client = await prepared(secure.endpoint, friend, policy, mode)
    with pytest.raises((ua.UaError, ConnectionError)):
        await client.connect()


async def test_unknown_application_connects_as_soon_as_it_is_trusted(
    secure: UaServer, secure_settings: OpcuaSettings, tmp_path: Path
) -> None:
    stranger = make_application(tmp_path)
    with pytest.raises((ua.UaError, ConnectionError)) as caught:
        async with connected(secure.endpoint, stranger):
            pass
    assert isinstance(caught.value, ua.uaerrors.BadSecurityChecksFailed | ConnectionError)
    thumbprint = certificates.thumbprint(x509_from_der(stranger.certificate))
    path = Path(secure_settings.pki, "rejected", f"{thumbprint}.der")
    assert path.read_bytes() == stranger.certificate  # noqa: ASYNC240 - a fast call
    stranger.trusted_by(secure_settings)
    async with connected(secure.endpoint, stranger) as client:
        assert await serves(client)


async def test_new_installation_refuses_writes_and_calls(secure: UaServer, friend: Application) -> None:
    async with connected(secure.endpoint, friend) as client:
        space = Space(client, await client.get_namespace_array())
        with pytest.raises(ua.uaerrors.BadUserAccessDenied):
            await (await space.response_list()).write_value(ua.Variant([], ua.VariantType.ExtensionObject))
        assert await may_call(client, space, "Store") is False
        assert await may_call(client, space, "Start") is False


@pytest.mark.parametrize("role", Role)
async def test_user_has_the_permissions_of_the_role(secure: UaServer, friend: Application, role: Role) -> None:
    async with connected(secure.endpoint, friend, user=role.name.lower()) as client:
        space = Space(client, await client.get_namespace_array())
        assert await may_call(client, space, "Start") is (role >= Role.OPERATOR)
        assert await may_call(client, space, "Store") is (role >= Role.ENGINEER)


async def may_call(client: Client, space: Space, name: str) -> bool:
    """Return whether a call without arguments is allowed; check that the attribute UserExecutable is the same."""
    method = await space.member("JobOrderControl", name)
    parent = await method.get_parent()
    (result,) = await client.uaclient.call([ua.CallMethodRequest(parent.nodeid, method.nodeid, [])])
    executable = (await method.read_attribute(ua.AttributeIds.UserExecutable)).Value.Value
    assert executable is (result.StatusCode.value != ua.StatusCodes.BadUserAccessDenied)
    return bool(executable)


@pytest.mark.parametrize(("user", "password"), [("operator", "wrong"), ("nobody", PASSWORD), ("operator", "")])
async def test_wrong_user_and_wrong_password_return_the_same_error(
    secure: UaServer, friend: Application, user: str, password: str
) -> None:
    with pytest.raises(ua.uaerrors.BadUserAccessDenied):
        async with connected(secure.endpoint, friend, user=user, password=password):
            pass


async def test_anonymous_access_can_be_disabled(tmp_path: Path, friend: Application) -> None:
    settings = with_users(make_settings(tmp_path, anonymous="nobody"))
    friend.trusted_by(settings)
    async with served(settings, MACHINES[:1]) as closed:
        for endpoint in await offered(closed):
            assert [token.TokenType for token in endpoint.UserIdentityTokens] == [ua.UserTokenType.UserName]
        async with connected(closed.endpoint, friend, user="operator") as client:
            assert await serves(client)
        client = await prepared(closed.endpoint, friend)
        with pytest.raises(ua.uaerrors.BadIdentityTokenRejected):
            await anonymously(client)


async def anonymously(client: Client) -> None:
    await client.connect_socket()
    with contextlib.ExitStack() as stack:
        stack.callback(client.disconnect_socket)
        await client.send_hello()
        await client.open_secure_channel()
        await client.create_session()
        parameters = ua.ActivateSessionParameters(UserIdentityToken=ua.AnonymousIdentityToken(PolicyId="anonymous"))
        parameters.ClientSignature = signature_of(client)
        await client.uaclient.activate_session(parameters)


async def test_unencrypted_client_connects_if_the_settings_allow_it() -> None:
    async with served(SETTINGS, MACHINES[:1]) as plain, patient_client(plain.endpoint) as client:
        assert await serves(client)
        modes = {endpoint.SecurityMode for endpoint in await client.get_endpoints()}
        assert modes == {ua.MessageSecurityMode.None_, ua.MessageSecurityMode.SignAndEncrypt}
