"""Station settings that are lists of items of features: put, deleted and read; all faults are reported at once."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.setting_texts import SettingTexts

MAX_ITEM_BYTES: Final = 16_384
_MOST_FAULTS: Final = 50


class ListedSetting(Struct, frozen=True, kw_only=True):
    """A kind of items: what one is called, the member with its name, where they are kept, and what checks them."""

    noun: str
    title: str
    """What one is called in a sentence of its own, such as `definition of a tag`."""
    name_member: str
    stored: SettingTexts
    most: int
    parse: Callable[[object], tuple[tuple[object, ...], tuple[str, ...]]]
    """Return the items of a list, and all faults."""
    advice: str
    """How to find the faults before."""


async def plan_put(store: Store, listed: ListedSetting, payload: object) -> Commit:
    """Return the commit that stores items, each in the place of one with its name; raises Refused with all faults."""
    items = _items(payload)
    if not items:
        raise Refused("invalid_payload", f"the event names no {listed.noun}", f"Send a {listed.noun}, or a list.")
    _, faults = listed.parse(list(items))
    name = listed.name_member
    texts = {str(item[name]): _encoded(item) for item in items if isinstance(item, dict) and name in item}
    large = [name for name, text in texts.items() if len(text) > MAX_ITEM_BYTES]
    problems = [*faults, *(f"{listed.noun} {word!r}: it has more than {MAX_ITEM_BYTES} bytes" for word in large)]
    revision, others = await listed.stored.count_without(store, texts)
    if others + len(texts) > listed.most:
        problems.append(f"there would be more than {listed.most} {listed.noun}s; delete others first")
    if problems:
        raise Refused(listed.noun, "; ".join(problems[:_MOST_FAULTS]), listed.advice)
    return listed.stored.save(store.keys, revision, texts)


async def plan_delete(store: Store, listed: ListedSetting, payload: object) -> Commit:
    """Return the commit that removes items by their names; an unknown name is removed already."""
    names = _names(listed, payload)
    if not names or not all(isinstance(name, str) and name for name in names):
        advice = f"Send objects with the member {listed.name_member}."
        raise Refused("invalid_payload", f"the event names no {listed.noun}", advice)
    return listed.stored.save(store.keys, await listed.stored.revision(store), dict.fromkeys(map(str, names)))


async def read_items(store: Store, listed: ListedSetting, payload: object) -> list[Any]:
    """Return the stored items as they were sent: those that the payload names, without a payload all."""
    named = _names(listed, payload)
    stored = (await listed.stored.load(store)).texts
    return [json.loads(text) for name, text in stored.items() if not named or name in named]


def _items(payload: object) -> Sequence[object]:
    if payload is None:
        return ()
    return payload if isinstance(payload, list) else [payload]


def _names(listed: ListedSetting, payload: object) -> list[object]:
    items = (item for item in _items(payload) if isinstance(item, str | dict))
    return [item if isinstance(item, str) else item.get(listed.name_member) for item in items]


def _encoded(item: dict[str, Any]) -> str:
    return msgspec.json.encode(item).decode()
