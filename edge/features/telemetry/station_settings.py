"""Rules and definitions of tags as station settings."""

from typing import Final

from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.tag import MAX_TAGS, parse_definitions
from edge.station.settings import ListedSetting
from edge.store.resources import RULES, TAGS

MAX_RULES: Final = 1_000
"""Rules that the MES may store."""
RULE_SETTING: Final = ListedSetting(
    noun="rule",
    title="rule",
    name_member="id",
    stored=RULES,
    most=MAX_RULES,
    parse=parse_rules,
    advice="`edge rules check FILE` finds the same.",
)
TAG_SETTING: Final = ListedSetting(
    noun="tag",
    title="definition of a tag",
    name_member="tag",
    stored=TAGS,
    most=MAX_TAGS,
    parse=parse_definitions,
    advice="The schema is schemas/tags.schema.json.",
)
