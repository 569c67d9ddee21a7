"""Matches topics against the filters of subscriptions (MQTT 5, 4.7)."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a subscription to `topic_filter`, shared or not, receives the messages of `topic`."""
    if topic_filter.startswith("$share/"):
        topic_filter = topic_filter.split("/", 2)[2]
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in {"+", "#"}:
        return False
    for position, level in enumerate(wanted):
        if level == "#":
            return True
        if position >= len(levels) or level not in {"+", levels[position]}:
            return False
    return len(wanted) == len(levels)
