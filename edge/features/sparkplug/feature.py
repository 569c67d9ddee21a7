"""The gateway as an edge node of Sparkplug B."""

from edge.app.feature import Feature
from edge.config import Settings


def _is_on(settings: Settings) -> bool:
    return settings.is_on("sparkplug") or any(
        getattr(section, "payload", "") == "sparkplug" for section in settings.sections.values()
    )


FEATURE = Feature(
    "sparkplug",
    keys="edge.features.sparkplug.keys",
    sections="edge.features.sparkplug.settings:SECTIONS",
    source_payloads={"sparkplug": "edge.features.sparkplug.settings:source_faults"},
    brokers="edge.features.sparkplug.checks:brokers",
    is_on=_is_on,
    needs=("telemetry",),
    open="edge.features.sparkplug.service:publish_tags",
    serve="edge.features.sparkplug.service:open_sparkplug",
)
