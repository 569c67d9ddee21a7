"""The gateway as an edge node of Sparkplug B."""

from edge.app.feature import Feature

FEATURE = Feature(
    "sparkplug",
    is_on=lambda settings: settings.telemetry.mode != "off" and bool(settings.sparkplug.group),
    serve="edge.features.sparkplug.service:open_sparkplug",
)
