"""Keeps the rules of a gateway up to date: those of its settings, and those of the MES, which replace them by id."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from edge.app.built_in_rules import with_built_in
from edge.errors import Unavailable
from edge.model.rule import Rule
from edge.rules.rule_form import parse_rules
from edge.store import rule_list
from edge.store.client import Store

logger = structlog.get_logger(__name__)

_POLL_S: Final = 5.0
"""Another gateway on the same store may have got the rules."""


class RuleUpdates:
    """Loads the rules of the MES when they have changed; `apply` gets all rules then."""

    def __init__(self, store: Store, own: Sequence[Rule], apply: Callable[[tuple[Rule, ...]], None]) -> None:
        self.rules = with_built_in(own)
        self._store = store
        self._own = own
        self._apply = apply
        self._revision = 0

    async def run(self, poll_s: float = _POLL_S) -> None:
        """Follow the rules until cancelled; an unavailable store is waited for."""
        while True:
            try:
                if await rule_list.revision(self._store) != self._revision:
                    await self.refresh()
            except Unavailable as error:
                logger.debug("rules of the MES not read", reason=error.message)
            await asyncio.sleep(poll_s)

    async def refresh(self, _scope: str = "") -> None:
        """Load the rules now. Raises Unavailable."""
        stored = await rule_list.load(self._store)
        if stored.revision == self._revision:
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
