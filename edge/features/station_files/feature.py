"""Files of a station: recipes, rules, flows and resources as text."""

from edge.app.feature import Feature

FEATURE = Feature(
    "station_files",
)
