"""The station page and its HTTP API."""

from edge.app.feature import Feature

FEATURE = Feature(
    "page",
)
