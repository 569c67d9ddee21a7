"""Signed commands for many gateways."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "fleet",
    is_on=lambda settings: settings.fleet.listen != "off",
    serve="edge.features.fleet.service:open_fleet",
    commands={
        "fleet": Noun(
            "edge.features.fleet.cli.commands", "Show the components of a plant, and send them signed commands."
        ),
    },
)
