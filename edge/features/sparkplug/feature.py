"""The gateway as an edge node of Sparkplug B."""

from typing import TYPE_CHECKING

from edge.app.feature import Feature

if TYPE_CHECKING:
    from edge.config import Settings


def _is_on(settings: "Settings") -> bool:
    reads = any(getattr(each, "payload", "") == "sparkplug" for each in settings.source.values())
    return settings.telemetry.mode != "off" and (reads or bool(settings.sparkplug.group))


FEATURE = Feature(
    "sparkplug",
    is_on=_is_on,
    serve="edge.features.sparkplug.service:open_sparkplug",
)
