"""Keeps the rules of a gateway up to date: those of its settings, and those of the MES, which replace them by id."""

from collections.abc import Callable, Sequence

import structlog

from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rule_sources import combine, load_sent_rules
from edge.store.client import Store
from edge.store.setting_texts import RULES

logger = structlog.get_logger(__name__)


class RuleUpdates:
    """Loads the rules of the MES when they have changed; `apply` gets all rules then."""

    def __init__(self, store: Store, own: Sequence[Rule], apply: Callable[[tuple[Rule, ...]], None]) -> None:
        self.rules = tuple(each.rule for each in combine(own))
        self._store = store
        self._own = own
        self._apply = apply
        self._revision = 0

    async def refresh(self, _scope: str = "") -> None:
        """Load the rules if they have changed. Raises Unavailable."""
        if await RULES.revision(self._store) == self._revision:
            return
        sent = await load_sent_rules(self._store)
        if sent.revision == self._revision:  # another task has loaded them meanwhile
            return
        self._revision = sent.revision
        self.rules = tuple(each.rule for each in combine(self._own, sent.rules))
        self._apply(self.rules)
        logger.info("rules of the MES loaded", rules=len(sent.rules))
