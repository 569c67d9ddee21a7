"""Caches the plans of flow documents."""

from collections import OrderedDict
from typing import Final

import msgspec

from edge.features.flows.nodes.registry import BUILT_IN, NodeKinds
from edge.features.flows.plan import Plan, Rejected, plan_flow

_MOST: Final = 1000


class Plans:
    """Plans documents with the node kinds of this process."""

    def __init__(self, kinds: NodeKinds = BUILT_IN) -> None:
        self._kinds = kinds
        self._cache: OrderedDict[str, Plan | Rejected] = OrderedDict()

    def of(self, document: str) -> Plan | Rejected:
        """Return the plan of a document, JSON text, or its faults."""
        found = self._cache.get(document)
        if found is None:
            found = self._cache[document] = plan_flow(msgspec.json.decode(document), self._kinds)
            if len(self._cache) > _MOST:
                self._cache.popitem(last=False)
        self._cache.move_to_end(document)
        return found
