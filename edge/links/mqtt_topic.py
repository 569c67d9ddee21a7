"""Matches topics against the filters of subscriptions (MQTT 5, 4.7)."""

import re
from collections.abc import Callable
from functools import cache


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a subscription to `topic_filter`, shared or not, receives the messages of `topic`."""
    return bool(_check_of(topic_filter)(topic))


# All filters are kept, as only the settings name them; topics, which others choose and which can have 64 KiB, are not.
@cache
def _check_of(topic_filter: str) -> Callable[[str], object]:
    if topic_filter.startswith("$share/"):
        topic_filter = topic_filter.split("/", 2)[2]
    first, *rest = topic_filter.split("/")
    if not {"+", "#"} & {first, *rest}:
        return topic_filter.__eq__
    # A wildcard at the start receives no topic that begins with $.
    start = {"+": r"(?!\$)[^/]*", "#": r"(?!\$).*"}.get(first, re.escape(first))
    levels = [{"+": "/[^/]*", "#": "(?:/.*)?"}.get(level, "/" + re.escape(level)) for level in rest]
    return re.compile(start + "".join(levels), re.DOTALL).fullmatch
