"""Malformed messages over the own channel, before and after login: each request has an answer, no other client notices.

`make fuzz` sends 100,000 of them, `make test` a few. Bodies are mutilated in sound chunks, on a channel without a
session and in an activated one; whole chunks are mutilated with their headers, and each of them ends its connection.
"""

import asyncio
import contextlib
import dataclasses
import logging
import os
import random
import resource
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
import pytest_asyncio
from asyncua import ua
from asyncua.ua.ua_binary import nodeid_from_binary, nodeid_to_binary, struct_to_binary

from edge.config import OpcuaSettings
from edge.foundation.task_group import background_task
from edge.model.user import Role
from edge.opcua.services import PUBLISH
from edge.uaserver.server import UaServer
from tests.opcua.attack_client import requests
from tests.opcua.test_server_transport_fuzz import mutilated, reads_of_another
from tests.uaserver.clients import Application
from tests.uaserver.running import MACHINES, served
from tests.uaserver.wire import Wire

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

MESSAGES = int(os.environ.get("EDGE_FUZZ", "3000"))
AT_A_TIME = 20
OF_CONNECTION = 10
"""Batches of one connection."""
LONGEST = 30_000
"""Bytes of a sound request: with what a mutation adds it is one chunk."""
LAST = 77_777_777
"""The handle of the last request of a batch."""
POLICY = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256"


@pytest.fixture(autouse=True)
def _unrecorded() -> Iterator[None]:
    """Disable the records of refusals and faults: pytest would collect all of them."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served(machines=MACHINES[:1], role=Role.ENGINEER) as running:
        yield running


def _body(request: ua.CreateSessionRequest, token: ua.NodeId) -> bytes:
    request.RequestHeader.AuthenticationToken = token
    packed: bytes = struct_to_binary(request)
    return packed


def _create() -> ua.CreateSessionRequest:
    request = ua.CreateSessionRequest()
    request.Parameters.ClientDescription.ApplicationUri = "urn:fuzz"
    request.Parameters.EndpointUrl = "opc.tcp://localhost"
    request.Parameters.SessionName = "fuzz"
    request.Parameters.ClientNonce = bytes(32)
    request.Parameters.RequestedSessionTimeout = 60_000
    return request


def _activate() -> ua.ActivateSessionRequest:
    request = ua.ActivateSessionRequest()
    request.Parameters.UserIdentityToken = ua.AnonymousIdentityToken(PolicyId="anonymous")
    request.Parameters.LocaleIds = ["en"]
    return request


def sound_requests() -> list[ua.CreateSessionRequest]:
    """Return requests of every service, of a few operations each."""
    found = [_create(), _activate(), ua.GetEndpointsRequest(), ua.FindServersRequest(), ua.CancelRequest()]
    found += [ua.PublishRequest(), ua.RepublishRequest(), ua.CreateSubscriptionRequest(), ua.CloseSessionRequest()]
    found += [request for _, request in requests(1)]
    for request in found:
        for field in dataclasses.fields(request.Parameters) if hasattr(request, "Parameters") else ():
            value = getattr(request.Parameters, field.name)
            if isinstance(value, list):
                setattr(request.Parameters, field.name, value[:2])
    return [request for request in found if len(struct_to_binary(request)) < LONGEST]


async def _opened(stack: contextlib.AsyncExitStack, server: UaServer) -> Wire:
    wire = await stack.enter_async_context(Wire.to(server.endpoint))
    await wire.hello()
    await wire.open()
    return wire


async def _token(wire: Wire) -> ua.NodeId:
    """Log in; return the token of the session."""
    wire.request(_body(_create(), ua.NodeId()))
    _, header, body = await wire.answer()
    assert header.ServiceResult.is_good()
    nodeid_from_binary(body)  # the id of the session
    token = nodeid_from_binary(body)
    wire.request(_body(_activate(), token))
    _, header, _ = await wire.answer()
    assert header.ServiceResult.is_good()
    return token


def _is_publish(body: bytes) -> bool:
    return body.startswith(nodeid_to_binary(PUBLISH))


async def _volley(wire: Wire, bodies: Sequence[bytes], seen: Counter[str]) -> None:
    """Send requests and a last one; each of them has its answer before that of the last one, but for a Publish."""
    last = ua.FindServersRequest()
    last.RequestHeader.RequestHandle = LAST
    for body in (*bodies, _body(last, ua.NodeId())):
        wire.request(body)
    answers = 0
    while True:
        _, header, _ = await wire.answer()
        if header.RequestHandle == LAST:
            break
        seen[header.ServiceResult.name] += 1
        answers += 1
    assert len(bodies) - answers <= sum(map(_is_publish, bodies)) + 1, "a request has no answer"


@pytest.mark.parametrize("has_session", [False, True], ids=["before login", "after login"])
async def test_each_malformed_request_is_answered(server: UaServer, *, has_session: bool) -> None:
    chance = random.Random(4711 + has_session)
    sound = sound_requests()
    seen: Counter[str] = Counter()
    latencies: list[float] = []
    sent, used = 0, 0
    async with background_task(reads_of_another(server, latencies), "reads"):
        while sent < MESSAGES * 2 // 5:
            async with contextlib.AsyncExitStack() as stack:
                wire = await _opened(stack, server)
                token = await _token(wire) if has_session else ua.NodeId()
                for _ in range(OF_CONNECTION):
                    some = chance.choices(sound, k=AT_A_TIME)
                    await _volley(wire, [mutilated(_body(request, token), chance) for request in some], seen)
                    sent += AT_A_TIME
            if not used and sent > MESSAGES // 5:
                used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    logging.getLogger(__name__).error("%s %s", sent, dict(seen))
    assert sum(seen.values()) > sent // 2
    assert seen["BadInternalError"] == 0, seen
    assert len(latencies) > sent // 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 32_768  # KiB


def _frames(certificate: bytes) -> list[bytes]:
    """Return sound chunks: of a Hello, of channels without and with security, of requests on no channel."""

    def frame(kind: bytes, body: bytes) -> bytes:
        return struct.pack("<3scI", kind, b"F", 8 + len(body)) + body

    hello = frame(b"HEL", struct_to_binary(ua.Hello(EndpointUrl="opc.tcp://localhost")))
    opening = struct_to_binary(ua.OpenSecureChannelRequest())
    plain = struct_to_binary(ua.AsymmetricAlgorithmHeader(SecurityPolicyURI=POLICY.replace("Basic256Sha256", "None")))
    secured = struct_to_binary(
        ua.AsymmetricAlgorithmHeader(
            SecurityPolicyURI=POLICY, SenderCertificate=certificate, ReceiverCertificateThumbPrint=bytes(20)
        )
    )
    numbers = struct.pack("<II", 1, 1)
    none = frame(b"OPN", struct.pack("<I", 0) + plain + numbers + opening)
    encrypted = frame(b"OPN", struct.pack("<I", 0) + secured + bytes(256))
    request = frame(b"MSG", struct.pack("<II", 0, 0) + numbers + struct_to_binary(_create()))
    return [hello, hello + none, hello + encrypted, hello + request, hello + none + request, none]


@pytest.mark.parametrize("is_secure", [False, True], ids=["without security", "with security"])
async def test_each_malformed_chunk_ends_its_connection(
    server: UaServer, secure_settings: OpcuaSettings, friend: Application, *, is_secure: bool
) -> None:
    chance = random.Random(17 + is_secure)
    frames = _frames(friend.certificate)
    latencies: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        target = server
        if is_secure:
            target = await stack.enter_async_context(served(secure_settings, machines=MACHINES[:1]))
        await stack.enter_async_context(background_task(reads_of_another(server, latencies), "reads"))

        async def send(data: bytes) -> None:
            async with Wire.to(target.endpoint) as wire:
                with contextlib.suppress(ConnectionError):
                    # Whatever size the header names, the bytes behind it complete the chunk and begin an invalid one.
                    wire.writer.write(data + bytes(1 << 17))
                    async with asyncio.timeout(60):
                        while await wire.reader.read(1 << 16):
                            pass

        for _ in range(MESSAGES // 10 // 10):
            await asyncio.gather(*(send(mutilated(chance.choice(frames), chance)) for _ in range(10)))
        assert len(latencies) > MESSAGES // 2000
