"""The gateway as an edge node of Sparkplug B."""

from edge.app.feature import Feature

FEATURE = Feature(
    "sparkplug",
)
