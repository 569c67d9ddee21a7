"""Examines the mirrored sets: which gateway reads each of them, and whether its last read was good."""

from collections.abc import AsyncIterator

from edge.access.instances import working_instances
from edge.config import Settings
from edge.features.telemetry.settings import mirrors_of
from edge.model.finding import HealthFinding, ok, warning
from edge.store import set_mirrors as mirrors
from edge.store.client import Store
from edge.store.opening import open_store
from edge.store.set_mirrors import Freshness


async def examine_mirrors(settings: Settings) -> AsyncIterator[HealthFinding]:
    """Examine each mirror of the settings. Raises SettingsError and Unavailable when the store cannot be read."""
    if not mirrors_of(settings) or settings.redis.url == "embedded:":
        return
    async with open_store(settings.redis, consumer=None) as store:
        for name in mirrors_of(settings):
            yield await examine_mirror(store, name)


async def examine_mirror(store: Store, name: str) -> HealthFinding:
    """Return the finding about a mirror. Raises Unavailable."""
    subject = f"mirror {name}"
    reader = await mirrors.load_reader_name(store, name)
    state = (await mirrors.load_states(store, (name,))).get(name)
    if reader is None or not await working_instances(store, (reader,)):
        advice = f"Correct url and key of [mirror.{name}] on a gateway that works; its log has the reason."
        return warning(subject, "no gateway reads it: conditions see an old copy, or none", advice)
    if state is None or state.freshness is Freshness.STALE:
        return warning(subject, f"{reader} has not read it yet", f"Read the log of {reader}.")
    return ok(subject, f"read by {reader}")
