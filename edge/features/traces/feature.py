"""Curves and images of results."""

from edge.app.feature import Feature

FEATURE = Feature(
    "traces",
    prepare="edge.features.traces.service:open_traces",
)
