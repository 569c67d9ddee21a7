"""Keeps the rules of a gateway up to date: those of its settings, and those of the MES, which replace them by id."""

import json
from collections.abc import Callable, Sequence

import structlog

from edge.app.built_in_rules import with_built_in
from edge.model.rule import Rule
from edge.rules.rule_form import parse_rules
from edge.store.client import Store
from edge.store.setting_texts import RULES

logger = structlog.get_logger(__name__)


class RuleUpdates:
    """Loads the rules of the MES when they have changed; `apply` gets all rules then."""

    def __init__(self, store: Store, own: Sequence[Rule], apply: Callable[[tuple[Rule, ...]], None]) -> None:
        self.rules = with_built_in(own)
        self._store = store
        self._own = own
        self._apply = apply
        self._revision = 0

    async def refresh(self, _scope: str = "") -> None:
        """Load the rules if they have changed. Raises Unavailable."""
        if await RULES.revision(self._store) == self._revision:
            return
        stored = await RULES.load(self._store)
        if stored.revision == self._revision:  # another task has loaded them meanwhile
            return
        sent: list[Rule] = []
        for rule_id, text in stored.texts.items():
            rules, faults = parse_rules([_decoded(text)])
            sent += rules
            if faults:
                advice = "It is left out; send it again."
                logger.error("rule of the MES unreadable", rule=rule_id, reason="; ".join(faults), advice=advice)
        self._revision = stored.revision
        ids = {rule.id for rule in sent}
        self.rules = with_built_in((*(rule for rule in self._own if rule.id not in ids), *sent))
        self._apply(self.rules)
        logger.info("rules of the MES loaded", rules=len(sent))


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
