"""Rules as station settings: the MES puts, deletes and reads them; every fault of a list is reported at once."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from edge.errors import Refused
from edge.rules.rule_form import parse_rules
from edge.store import rule_list
from edge.store.client import Store
from edge.store.commit import Commit

MAX_RULES: Final = 1_000
"""Rules that the MES may store."""
MAX_RULE_BYTES: Final = 16_384
_MOST_FAULTS: Final = 50


async def plan_put(store: Store, payload: object) -> Commit:
    """Return the commit that stores rules, each in the place of one with its id; raises Refused with all faults."""
    items = _items(payload)
    if not items:
        raise Refused("invalid_payload", "the event names no rule", "Send a rule, or a list of rules.")
    _, faults = parse_rules(list(items))
    texts = {str(each["id"]): _encoded(each) for each in items if isinstance(each, dict) and "id" in each}
    large = [rule_id for rule_id, text in texts.items() if len(text) > MAX_RULE_BYTES]
    problems = [*faults, *(f"rule {each!r}: it has more than {MAX_RULE_BYTES} bytes" for each in large)]
    before = await rule_list.load(store)
    if len({*before.texts, *texts}) > MAX_RULES:
        problems.append(f"there would be more than {MAX_RULES} rules; delete others first")
    if problems:
        raise Refused("rule", "; ".join(problems[:_MOST_FAULTS]), "`edge rules check FILE` finds the same faults.")
    return rule_list.save(store.keys, before, texts)


async def plan_delete(store: Store, payload: object) -> Commit:
    """Return the commit that removes rules by their ids; an unknown id is removed already."""
    ids = [
        each if isinstance(each, str) else each.get("id") for each in _items(payload) if isinstance(each, str | dict)
    ]
    if not ids or not all(isinstance(each, str) and each for each in ids):
        raise Refused("invalid_payload", "the event names no rule", "Send objects with the id of a rule.")
    return rule_list.save(store.keys, await rule_list.load(store), dict.fromkeys(map(str, ids)))


async def read_rules(store: Store, payload: object) -> list[Any]:
    """Return the stored rules as they were sent: those that the payload names, without a payload all."""
    named = [
        each if isinstance(each, str) else each.get("id") for each in _items(payload) if isinstance(each, str | dict)
    ]
    stored = (await rule_list.load(store)).texts
    return [json.loads(text) for rule_id, text in stored.items() if not named or rule_id in named]


def _items(payload: object) -> Sequence[object]:
    if payload is None:
        return ()
    return payload if isinstance(payload, list) else [payload]


def _encoded(rule: dict[str, Any]) -> str:
    return msgspec.json.encode(rule).decode()
