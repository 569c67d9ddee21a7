"""The documents of features in station files; what reads and writes a kind is imported at its first use."""

import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edge.app.documents import Described, Documents, GuardedStore, decoded_or_text
from edge.app.features import document_kinds, recipe_checks, settings_kinds, work_master_recorders
from edge.config import Settings
from edge.station.settings import (
    MAX_ITEM_BYTES,
    ListedSetting,
    Recorder,
    SettingOrigin,
    SettingsMethod,
    SettingSource,
    StationSettings,
)
from edge.store.client import Store
from edge.store.commit import Committed, join


class StationDocuments:
    """The documents of a gateway with these settings, and what its features serve each other (`core.ports`)."""

    def __init__(self, settings: Settings, ports: Mapping[str, Any] = {}) -> None:
        self._settings = settings
        self._ports = ports
        self._opened: dict[str, Documents] = {}

    @property
    def recorders(self) -> Sequence[Recorder]:
        """What is written together with Work Masters of station files."""
        return work_master_recorders(self._settings, SettingOrigin(SettingSource.STATION_FILE))

    def of(self, kind: str) -> Documents:
        """Return those of a kind."""
        if kind not in self._opened:
            location = document_kinds()[kind].documents
            self._opened[kind] = (
                pkgutil.resolve_name(location)(self._settings, self._ports) if location else ListedDocuments(kind)
            )
        return self._opened[kind]

    async def stored(self, store: Store) -> Mapping[str, Documents]:
        """Return those of the kinds that a store has or had."""
        kinds = document_kinds()
        found = await store.read([("EXISTS", pkgutil.resolve_name(kind.key)(store.keys)) for kind in kinds.values()])
        return {kind: self.of(kind) for kind, exists in zip(kinds, found, strict=True) if exists}


async def change_setting(
    target: GuardedStore,
    scope: str,
    kind: str,
    method: SettingsMethod,
    payload: object,
    recorders: Sequence[Recorder] = (),
) -> bool:
    """Write a change as a MES does by an event; return False without a write when the guard does not hold."""
    settings = StationSettings(target.store, settings_kinds(), recipe_checks=recipe_checks(), recorders=recorders)
    guarded = {guard.key for guard in target.guard.guards}
    while True:
        plan, _ = await settings.plan(scope, kind, method, payload)
        result = await target.store.commit(join((target.guard, plan)))
        if isinstance(result, Committed):
            return True
        if result.key in guarded:
            return False


class ListedDocuments:
    """The items of a kind of station settings; a file has one or a list of them."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._listed: ListedSetting = pkgutil.resolve_name(settings_kinds()[kind])
        self.most = self._listed.most

    async def prepare(self) -> None:
        """Return at once: an item is checked by itself."""

    def read(self, data: object, _folders: Sequence[str]) -> tuple[Mapping[str, Described], Sequence[str]]:
        """Return the items of a file by their names, and all faults."""
        listed, items = self._listed, data if isinstance(data, list) else [data]
        _, faults = listed.parse(items)
        describeds = {
            item[listed.name_member]: Described(item)
            for item in items
            if isinstance(item, dict) and isinstance(item.get(listed.name_member), str)
        }
        large = [name for name, item in describeds.items() if len(msgspec.json.encode(item.content)) > MAX_ITEM_BYTES]
        return describeds, (
            *faults,
            *(f"{listed.noun} {name!r}: it has more than {MAX_ITEM_BYTES} bytes" for name in large),
        )

    async def load(self, store: Store) -> Mapping[str, Described]:
        """Return the items of a store by their names."""
        texts = (await self._listed.stored.load(store)).texts
        return {name: Described(decoded_or_text(text)) for name, text in texts.items()}

    async def mark(self, store: Store) -> object:
        """Return how often the items were changed."""
        return await self._listed.stored.revision(store)

    async def put(self, target: GuardedStore, _id: str, described: Described) -> bool:
        """Write an item."""
        return await change_setting(target, "", self._kind, SettingsMethod.PUT, [described.content])

    async def delete(self, target: GuardedStore, id: str) -> bool:
        """Delete an item."""
        return await change_setting(target, "", self._kind, SettingsMethod.DELETE, [id])
