"""Files of a station: recipes, rules, flows and resources as text."""

from edge.app.feature import Feature

FEATURE = Feature(
    "station_files",
    open="edge.features.station_files.operations:open_operations",
    prepare="edge.features.station_files.service:open_station_files",
)
