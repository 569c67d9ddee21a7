"""Alarms of a test, as a stack light follows them."""

import asyncio
from collections.abc import AsyncIterator, Collection

from edge.ports.alarm import AckState, ActiveState, Alarm


def alarm(severity: int, ack: AckState = AckState.UNACKNOWLEDGED, active: ActiveState = ActiveState.ACTIVE) -> Alarm:
    return Alarm(id=str(severity), rule="r", subject="s", active=active, acknowledgement=ack, severity=severity)


class AlarmFeed:
    """Yields what was put last."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Collection[Alarm]] = asyncio.Queue()

    def put(self, *alarms: Alarm) -> None:
        self._queue.put_nowait(alarms)

    async def follow(self) -> AsyncIterator[Collection[Alarm]]:
        while True:
            yield await self._queue.get()
