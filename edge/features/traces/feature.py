"""Curves and images of results."""

from edge.app.feature import Feature
from edge.model.event_types import TRACES_METHOD_TYPE

FEATURE = Feature(
    "traces",
    checks="edge.features.traces.checks:checks",
    sections="edge.features.traces.settings:SECTIONS",
    payloads={
        "traces.call": ("edge.features.traces.service:TraceCall", TRACES_METHOD_TYPE.format("METHOD")),
        "traces.answer": ("edge.features.traces.service:TraceAnswer", TRACES_METHOD_TYPE.format("METHOD")),
    },
    page="edge.features.traces.page:PAGE",
    prepare="edge.features.traces.service:open_traces",
    options={"jobs results": "edge.features.traces.commands:traces_option"},
)
