"""Signed commands for many gateways."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "fleet",
    keys="edge.features.fleet.keys",
    sections="edge.features.fleet.settings:SECTIONS",
    folders="edge.features.fleet.settings:key_folders",
    is_on=lambda settings: settings.is_on("fleet"),
    serve="edge.features.fleet.service:open_fleet",
    commands={
        "fleet": Noun(
            "edge.features.fleet.cli.fleet", "Show the components of a plant, and send them signed commands."
        ),
    },
)
