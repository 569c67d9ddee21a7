"""Files of a station: recipes, rules, flows and resources as text."""

from edge.app.feature import Feature

FEATURE = Feature(
    "station_files",
    schemas={"station": "edge.features.station_files.objects:station_file_schema"},
    open="edge.features.station_files.operations:open_operations",
    prepare="edge.features.station_files.service:open_station_files",
    subcommands={
        "station": {
            "apply": "edge.features.station_files.commands:apply",
            "diff": "edge.features.station_files.commands:diff",
            "export": "edge.features.station_files.commands:export",
        },
        "check": {"station": "edge.features.station_files.commands:check"},
    },
)
