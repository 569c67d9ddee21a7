"""Links between monitored items: an item that changes triggers the reports of sampled items (OPC 10000-4, 5.13.1.6)."""

from collections import deque
from collections.abc import Iterable

from edge.opcua.message_limits import Notification


class TriggerLinks:
    """The links of one subscription, and the notifications of items in the mode Sampling."""

    def __init__(self, max_links: int) -> None:
        self._max_links = max_links
        self._links: dict[int, dict[int, None]] = {}
        self._count = 0
        self.sampled: dict[int, deque[Notification]] = {}

    def add(self, trigger: int, linked: int) -> bool:
        """Add a link; return False when there are too many."""
        there = self._links.setdefault(trigger, {})
        if linked not in there:
            if self._count >= self._max_links:
                return False
            there[linked] = None
            self._count += 1
        return True

    def remove(self, trigger: int, linked: int) -> bool:
        """Remove a link; return whether it was there."""
        there = self._links.get(trigger, {})
        if linked not in there:
            return False
        del there[linked]
        self._count -= 1
        return True

    def forget(self, item: int) -> None:
        """Remove an item that was deleted: its samples, the links from it and to it."""
        self._count -= len(self._links.pop(item, {}))
        for trigger in self._links:
            self.remove(trigger, item)
        self.sampled.pop(item, None)

    def linked(self, trigger: int) -> Iterable[int]:
        """Return the items that an item triggers."""
        return tuple(self._links.get(trigger, ()))

    def sample(self, item: int, notification: Notification, size: int) -> None:
        """Queue a notification of an item until it is triggered; the oldest leaves a full queue."""
        self.sampled.setdefault(item, deque(maxlen=max(size, 1))).append(notification)
