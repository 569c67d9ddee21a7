"""Where the definitions of tags and the rules of a gateway come from: settings, files, the MES, this program itself.

Those of the MES replace those of the settings by id, and are loaded again when they have changed.
"""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from edge.features.telemetry.built_in_rules import with_built_in
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.foundation.errors import Refused, SettingsError
from edge.foundation.text import Text, join_texts
from edge.model.json_value import read_json_text
from edge.ports.tag import MAX_TAGS, TagDefinitions, decode_definitions, parse_definitions
from edge.station.settings import ListedSetting
from edge.store.client import Store
from edge.store.resources import RULES, TAGS

logger = structlog.get_logger(__name__)


class RuleOrigin(StrEnum):
    """The writer of a rule."""

    SETTINGS = "settings"
    STATION = "station"
    BUILT_IN = "built-in"


class KnownRule(Struct, frozen=True):
    """A rule that is evaluated, and who wrote it."""

    rule: Rule
    origin: RuleOrigin


class SentRules(Struct, frozen=True):
    """The rules that the MES, a command or station files sent, and their revision."""

    revision: int
    rules: tuple[Rule, ...]


def read_rules(file: str) -> tuple[Rule, ...]:
    """Return the rules of a file; an empty name means none. Raises SettingsError with all their faults."""
    if not file:
        return ()
    try:
        rules, faults = parse_rules(read_json_text(Path(file).read_bytes()))
    except OSError as error:
        rules, faults = (), (f"cannot be read: {error.strerror}",)
    except Refused as refused:
        rules, faults = (), (refused.message,)
    if faults:
        problems = [join_texts(": ", (f"telemetry.rules: {file}", fault)) for fault in faults]
        raise SettingsError(
            problems, Text.of("Correct them all, then check again with: edge rules check {file}", file=file)
        )
    return rules


async def load_sent_rules(store: Store) -> SentRules:
    """Load the rules of the store; one that cannot be read is logged and left out. Raises Unavailable."""
    stored_texts = await RULES.load(store)
    sent: list[Rule] = []
    for rule_id, text in stored_texts.texts.items():
        rules, faults = parse_rules([_decoded(text)])
        sent += rules
        if faults:
            advice = "It is left out; send it again."
            logger.error("rule of the MES unreadable", rule=rule_id, reason="; ".join(faults), advice=advice)
    return SentRules(stored_texts.revision, tuple(sent))


def combine(own: Sequence[Rule], sent: Sequence[Rule] = ()) -> tuple[KnownRule, ...]:
    """Return the rules that are evaluated: by id, a sent one replaces that of the settings, and both a built-in one."""
    ids = {rule.id for rule in sent}
    kept = tuple(rule for rule in own if rule.id not in ids)
    origins = [RuleOrigin.SETTINGS] * len(kept) + [RuleOrigin.STATION] * len(sent)
    rules = with_built_in((*kept, *sent))
    origins += [RuleOrigin.BUILT_IN] * (len(rules) - len(origins))
    return tuple(KnownRule(rule, origin) for rule, origin in zip(rules, origins, strict=True))


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


class RuleUpdates:
    """Loads the rules of the MES when they have changed; `apply` gets all rules then."""

    def __init__(self, store: Store, own: Sequence[Rule], apply: Callable[[tuple[Rule, ...]], None]) -> None:
        self.rules = tuple(known_rule.rule for known_rule in combine(own))
        self._store = store
        self._own = own
        self._apply = apply
        self._revision = 0

    async def refresh(self, _scope: str = "") -> None:
        """Load the rules if they have changed. Raises Unavailable."""
        if await RULES.revision(self._store) == self._revision:
            return
        sent_rules = await load_sent_rules(self._store)
        if sent_rules.revision == self._revision:  # another task has loaded them meanwhile
            return
        self._revision = sent_rules.revision
        self.rules = tuple(known_rule.rule for known_rule in combine(self._own, sent_rules.rules))
        self._apply(self.rules)
        logger.info("rules of the MES loaded", rules=len(sent_rules.rules))


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


def read_definitions(file: str) -> TagDefinitions:
    """Return the definitions of a file; an empty name means none. Raises SettingsError with all their faults."""
    if not file:
        return TagDefinitions()
    try:
        definitions, faults = parse_definitions(read_json_text(Path(file).read_bytes()))
    except OSError as error:
        definitions, faults = (), (f"cannot be read: {error.strerror}",)
    except Refused as refused:
        definitions, faults = (), (refused.message,)
    if faults:
        problems = [join_texts(": ", (f"telemetry.tags: {file}", fault)) for fault in faults]
        raise SettingsError(problems, "Correct them all; the JSON Schema is schemas/tags.schema.json.")
    return TagDefinitions(definitions)


class TagUpdates:
    """Loads the definitions of the store when they have changed."""

    def __init__(self, store: Store, definitions: TagDefinitions) -> None:
        self._store = store
        self._definitions = definitions
        self._revision = 0

    async def refresh(self, _scope: str = "") -> None:
        """Load the definitions if they have changed. Raises Unavailable."""
        if await TAGS.revision(self._store) == self._revision:
            return
        stored_texts = await TAGS.load(self._store)
        if stored_texts.revision == self._revision:  # another task has loaded them meanwhile
            return
        self._revision = stored_texts.revision
        self._definitions.use_stored(decode_definitions(stored_texts.texts.values()))
        logger.info("definitions of tags loaded", tags=len(stored_texts.texts))
