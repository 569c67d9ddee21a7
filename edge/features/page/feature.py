"""The station page and its HTTP API."""

from edge.app.feature import Feature

FEATURE = Feature(
    "page",
    sections="edge.features.page.settings:SECTIONS",
    has_logins=True,
    is_on=lambda settings: settings.is_on("web"),
    checks="edge.features.page.checks:checks",
    serve="edge.features.page.service:open_page",
)
