"""Waits for the acknowledgements of an MQTT broker, by packet id; each has the same time, so one timer is enough."""

import asyncio
from typing import Any

from edge.foundation.errors import Unavailable


class Confirmations:
    """The packets that wait for their acknowledgement, of one connection.

    A timer for each packet would cost more than the packet: one runs for the oldest, whose time ends first.
    """

    def __init__(self, answer_s: float) -> None:
        """Create an empty set; the broker has `answer_s` seconds for each packet."""
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, tuple[float, asyncio.Future[Any]]] = {}
        """When the time of each packet ends, and its future; in the order of these instants."""
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, packet_id: int) -> bool:
        return packet_id in self._waiting

    def expect(self, packet_id: int) -> asyncio.Future[Any]:
        """Return the future of an acknowledgement, which raises TimeoutError when none comes in time."""
        answer = self._loop.create_future()
        self._waiting[packet_id] = self._loop.time() + self._answer_s, answer
        if self._timer is None:
            self._timer = self._loop.call_later(self._answer_s, self._check)
        return answer

    def confirm(self, packet_id: int, answer: object) -> None:
        """Pass on what the broker answered; ignore it when its sender has given up."""
        _, waiting = self._waiting.get(packet_id, (0.0, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def drop(self, packet_id: int) -> None:
        """Release a packet id: its acknowledgement has come, or its sender has given up."""
        del self._waiting[packet_id]

    def fail(self, error: Unavailable) -> None:
        """Raise an error for every packet, for the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
        for _, waiting in self._waiting.values():
            _raise(waiting, error)

    def _check(self) -> None:
        self._timer = None
        now = self._loop.time()
        for due, waiting in self._waiting.values():
            if due > now:
                self._timer = self._loop.call_at(due, self._check)
                return
            _raise(waiting, TimeoutError())


def _raise(waiting: asyncio.Future[Any], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
        # Its caller may have been cancelled.
        waiting.exception()
