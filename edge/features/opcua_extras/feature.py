"""Discovery, push of certificates, reverse connect and redundancy of the OPC UA server."""

from edge.app.feature import Feature

FEATURE = Feature(
    "opcua_extras",
    checks="edge.features.opcua_extras.checks:checks",
    subcommands={"opcua": {"advertise": "edge.features.opcua_extras.commands:advertise"}},
    opcua="edge.features.opcua_extras.opcua:add_extras",
)
