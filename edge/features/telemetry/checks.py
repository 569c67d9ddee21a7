"""What `edge doctor` examines of telemetry."""

from collections.abc import AsyncIterator, Iterator, Mapping

from edge.access.instances import working_instances
from edge.app.advice import advise, store_advice
from edge.config import Settings
from edge.features.telemetry.sample_store import open_volatile
from edge.features.telemetry.settings import mirrors_of
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding, ok, warning
from edge.store import set_mirrors as mirrors
from edge.store.client import Store
from edge.store.open_store import open_store
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
    subject = Text.of("mirror {name}", name=name)
    reader = await mirrors.load_reader_name(store, name)
    state = (await mirrors.load_states(store, (name,))).get(name)
    if reader is None or not await working_instances(store, (reader,)):
        advice = Text.of(
            "Correct url and key of [mirror.{name}] on a gateway that works; its log has the reason.", name=name
        )
        return warning(subject, "no gateway reads it: conditions see an old copy, or none", advice)
    if state is None or state.freshness is Freshness.STALE:
        return warning(
            subject,
            Text.of("{reader} has not read it yet", reader=reader),
            Text.of("Read the log of {reader}.", reader=reader),
        )
    return ok(subject, Text.of("read by {reader}", reader=reader))


UNIT = "microdcs-edge-telemetry-store"


async def examine_volatile_store(settings: Settings) -> AsyncIterator[HealthFinding]:
    """Examine the store of volatile samples, where the settings have one. Raises Unavailable."""
    async with open_volatile(settings, "doctor") as store:
        if store is None:
            return
        info: Mapping[str, str] = await store.execute("INFO")
    subject = "volatile store"
    if int(info["aof_enabled"]):
        yield warning(
            subject,
            "it writes files: samples wear out the flash",
            Text.of("Set `appendonly no` for {unit}.", unit=UNIT),
        )
    elif info["maxmemory_policy"] != "noeviction" or not int(info["maxmemory"]):
        found = Text.of(
            "maxmemory {maxmemory}, maxmemory-policy {maxmemory_policy}",
            maxmemory=info["maxmemory"],
            maxmemory_policy=info["maxmemory_policy"],
        )
        yield warning(
            subject, found, Text.of("Set `maxmemory 64mb` and `maxmemory-policy noeviction` for {unit}.", unit=UNIT)
        )
    else:
        yield ok(
            subject,
            Text.of(
                "samples in memory, {used} of {limit} MiB",
                used=int(info["used_memory"]) >> 20,
                limit=int(info["maxmemory"]) >> 20,
            ),
        )


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of mirrors and of the store of volatile samples."""
    if mirrors_of(settings):
        yield "mirrors", advise(examine_mirrors(settings), store_advice(settings.redis.url))
    yield (
        "volatile store",
        advise(examine_volatile_store(settings), Text.of("Start it: sudo systemctl start {unit}", unit=UNIT)),
    )
