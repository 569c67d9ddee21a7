"""Telemetry: tags, sources, rules, alarms, history."""

from edge.app.feature import DocumentKind, Feature, Noun

FEATURE = Feature(
    "telemetry",
    checks="edge.features.telemetry.checks:checks",
    keys="edge.features.telemetry.keys",
    sections="edge.features.telemetry.settings:SECTIONS",
    mirrors="edge.features.telemetry.settings:mirrors_of",
    page="edge.features.telemetry.page:PAGE",
    schemas={"rules": "edge.features.telemetry.model.rule:rules_schema"},
    is_on=lambda settings: not settings.is_off("telemetry"),
    open="edge.features.telemetry.service:open_telemetry",
    open_off="edge.features.telemetry.calls:open_alarm_calls",
    serve="edge.features.telemetry.service:serve_telemetry",
    settings_kinds={
        "rule": "edge.features.telemetry.definitions:RULE_SETTING",
        "tag": "edge.features.telemetry.definitions:TAG_SETTING",
    },
    documents={
        "tag": DocumentKind("tags", "edge.store.keys:Keys.telemetry_definitions"),
        "rule": DocumentKind("rules", "edge.store.keys:Keys.telemetry_rules"),
    },
    opcua="edge.features.telemetry.opcua.alarm_feed:add_alarms_of_store",
    discovered_as="edge.features.telemetry.settings:discovered_as",
    subcommands={"hw": {"volatile": "edge.features.telemetry.cli.volatile:volatile"}},
    commands={
        "alarms": Noun(
            "edge.features.telemetry.cli.alarms",
            "Show alarms; acknowledge, confirm, reset, shelve or disable them.",
        ),
        "tags": Noun(
            "edge.features.telemetry.cli.tags",
            "Show tags with their last samples, watch samples, or export history.",
        ),
        "rules": Noun(
            "edge.features.telemetry.cli.rules",
            "Check and show rules, and run them over recorded samples in virtual time.",
        ),
    },
)
