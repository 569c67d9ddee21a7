"""Clients that take all that the limits allow: each session sends one request after the other without a pause.

python -m tests.features.telemetry.opcua.legal_load ENDPOINT KIND SESSIONS

Prints a line when all sessions are at work; runs until it is ended.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from asyncua import Client, ua

from tests.features.telemetry.opcua.history_attack import BEGIN, TAG, YEAR, history
from tests.opcua.attack_client import browse, call, order
from tests.opcua_client import patient_client

HIERARCHY = ua.NodeId(ua.ObjectIds.HierarchicalReferences)
CLOCK = ua.NodeId(ua.ObjectIds.Server_ServerStatus_CurrentTime)


def _history() -> Iterator[Any]:
    while True:
        yield history(ua.ReadRawModifiedDetails(False, BEGIN - YEAR, BEGIN + YEAR, 0, True), TAG, 4)


def _calls() -> Iterator[Any]:
    large = order(40_000)
    while True:
        yield call("StoreAndStart", large, 1)
        yield call("StoreAndStart", order(200), 100)


def _browse() -> Iterator[Any]:
    roots = (ua.ObjectIds.BaseObjectType, ua.ObjectIds.ObjectsFolder, ua.ObjectIds.TypesFolder, ua.ObjectIds.Server)
    while True:
        for root in roots:
            yield browse(ua.NodeId(root), 500)


def _reads() -> Iterator[Any]:
    request = ua.ReadRequest()
    request.Parameters.NodesToRead = [ua.ReadValueId(CLOCK, ua.AttributeIds.Value)] * 100
    while True:
        yield request


KINDS: dict[str, Callable[[], Iterator[Any]]] = {
    "history": _history,
    "calls": _calls,
    "browse": _browse,
    "reads": _reads,
}


async def _work(client: Client, requests: Iterator[Any], counts: list[int]) -> None:
    client.uaclient.protocol.logger.setLevel("CRITICAL")
    for request in requests:
        with contextlib.suppress(ua.UaStatusCodeError):
            await client.uaclient.session._send_request(request)  # noqa: SLF001 - the answer is not decoded
        counts[0] += 1


async def _main(endpoint: str, kind: str, sessions: int) -> None:
    counts = [0]
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(patient_client(endpoint)) for _ in range(sessions)]
        works = [asyncio.create_task(_work(client, KINDS[kind](), counts)) for client in clients]
        sys.stdout.write("working\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        sys.stdout.write(f"{counts[0]}\n")
        sys.stdout.flush()
        for work in works:
            work.cancel()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
