"""The station page and its HTTP API."""

from edge.app.feature import Feature

FEATURE = Feature(
    "page",
    is_on=lambda settings: bool(settings.web.listen),
    serve="edge.features.page.service:open_page",
)
