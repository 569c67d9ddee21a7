"""Keeps in mind which answers could not be published: their callers see silence, and cannot report it."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog
from msgspec import Struct

from edge.links.log_throttle import LogThrottle

logger = structlog.get_logger(__name__)

_SHOWN_S: Final = 3600.0
"""How long an answer that could not be published is a problem, unless a later one passes."""
_MOST: Final = 20
"""The most response topics that are kept: callers choose them."""
_MOST_SHOWN: Final = 3
_TOPIC_LENGTH: Final = 200


class _Unsent(Struct, frozen=True):
    reason: str
    until: float


class UnsentAnswers:
    """The response topics of the last hour to which an answer could not be published, each with the reason."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Create it without a topic; `clock` returns monotonic seconds."""
        self._clock = clock
        self._topics: OrderedDict[str, _Unsent] = OrderedDict()
        self._faults = LogThrottle(logger)

    def add(self, topic: str, reason: str, source: str) -> None:
        """Keep and log that an answer to a call from the topic `source` was dropped."""
        topic = topic[:_TOPIC_LENGTH]
        self._faults.warning("answer dropped", f"{topic} {reason}", topic=topic, reason=reason, source=source)
        self._topics[topic] = _Unsent(reason, self._clock() + _SHOWN_S)
        self._topics.move_to_end(topic)
        if len(self._topics) > _MOST:
            self._topics.popitem(last=False)

    def remove(self, topic: str) -> None:
        """Forget a topic: an answer passed."""
        if self._topics:
            self._topics.pop(topic[:_TOPIC_LENGTH], None)

    def problems(self) -> list[str]:
        """Return a sentence for each of the newest topics."""
        now = self._clock()
        due = [(topic, unsent.reason) for topic, unsent in self._topics.items() if unsent.until > now]
        return [f"answers to {topic} are not sent: {reason}" for topic, reason in due[-_MOST_SHOWN:]]
