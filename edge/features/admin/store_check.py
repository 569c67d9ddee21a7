"""Examines the store: connection, durability, memory, latency."""

import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

from edge.access.instances import working_instances
from edge.app.advice import connection_advice, gateway_advice
from edge.config import RedisSettings
from edge.features.admin.snapshot import leased_instances
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.text import Text, join_texts
from edge.model.equipment_health import EquipmentHealth
from edge.model.finding import HealthFinding, failing, ok, warning
from edge.station.safing_tries import problem_of
from edge.store import components, equipment_memory
from edge.store.bounds import NO_LIMITS, BoundedCount, BoundedCounts, CountLimits
from edge.store.client import Store
from edge.store.dedupe import MarkCounter
from edge.store.observer import observer_of, open_observer
from edge.store.open_store import open_store
from edge.store.runs import active_jobs
from edge.store.sentinels import is_sentinel
from edge.store.server_check import NEARLY_FULL, MemoryUsage, drops_transactions, read_state
from edge.store.store_repair import StoreRepair, find_repairs
from edge.store.store_state import ProblemKind, find_problems, lag_text

_PINGS = 20
_MOST_SENDERS = 10
_SLOW_MS = 50.0
_FULL = 0.98
_FAILING = frozenset({ProblemKind.NO_MAJORITY, ProblemKind.PRIMARY_AWAY, ProblemKind.QUORUM})
_OF_SENTINELS = frozenset(
    {ProblemKind.NO_MAJORITY, ProblemKind.SENTINEL_AWAY, ProblemKind.QUORUM, ProblemKind.FEW_SENTINELS}
)
_OF_REPLICAS = frozenset({ProblemKind.REPLICA_AWAY, ProblemKind.REPLICA_LAGS, ProblemKind.PRIORITIES})


async def examine_store(settings: RedisSettings, limits: CountLimits = NO_LIMITS) -> AsyncIterator[HealthFinding]:
    """Examine the store of the settings. Raises SettingsError and Unavailable when it cannot serve a gateway."""
    if settings.url == "embedded:":
        yield warning(
            "store",
            "it exists only within the process of the gateway, and is lost with it",
            'Name a Redis server in [redis] url, or a directory: url = "embedded:/var/lib/microdcs-edge/store".',
        )
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(open_store(settings, consumer=None))
        except Unavailable:
            async for finding in _servers_of_closed_store(settings):
                yield finding
            raise
        async for finding in _examine_open_store(store, settings, limits):
            yield finding


async def _servers_of_closed_store(settings: RedisSettings) -> AsyncIterator[HealthFinding]:
    """Yield which servers behind Sentinel are the reason why the store cannot be opened; that needs no majority."""
    if not is_sentinel(settings.url):
        return
    async with open_observer(settings) as observer:
        state = await observer.read()
    for problem in find_problems(state):
        # The error of the store says it.
        if problem.kind is not ProblemKind.NO_MAJORITY:
            yield (failing if problem.kind in _FAILING else warning)(problem.subject, problem.found, problem.advice)


async def _examine_open_store(
    store: Store, settings: RedisSettings, limits: CountLimits
) -> AsyncIterator[HealthFinding]:
    info: Mapping[str, str] = await store.execute("INFO")
    at_work = len(await active_jobs(store))
    jobs = Text.of("1 job at work") if at_work == 1 else Text.of("{count} jobs at work", count=at_work)
    yield ok("store", join_texts(", ", (_server(info), jobs)))
    there = sorted(await working_instances(store, await leased_instances(store)))
    yield _gateways(there)
    for id, known_component in (await components.load_all(store)).items():
        if id in there and known_component.component.problems:
            advice = Text.of(
                "Correct what it names. Its log: journalctl -u microdcs-edge, on {host}",
                host=known_component.component.host,
            )
            yield warning(Text.of("problems of {id}", id=id), known_component.component.problems, advice)
    for gateway, report in (await equipment_memory.load_reports(store, there)).items():
        for device in report.equipment if report else ():
            yield _equipment(gateway, device)
    async for finding in _servers(store):
        yield finding
    yield await _durability(store, info)
    for repair in await find_repairs(store, settings):
        yield _repaired(repair)
    state = await read_state(store, limits, MarkCounter(sys.maxsize))
    yield _room(state.memory)
    for finding in _counts(state.counts):
        yield finding
    yield await _speed(store)


def _repaired(repair: StoreRepair) -> HealthFinding:
    report = repair.report
    made = datetime.fromtimestamp(report.at / 1000, UTC).isoformat(timespec="seconds")
    if report.discarded:
        found = Text.of(
            "{cut_bytes} bytes from a damage on were cut off by hand, {made}; {whole_bytes} bytes stayed",
            cut_bytes=report.cut_bytes,
            whole_bytes=report.whole_bytes,
            made=made,
        )
        advice = Text.of(
            "Jobs and results in them are gone, of any age. Compare all jobs since then with the MES and the equipment,"
            " check the storage, then remove the damaged file: rm -r {kept}",
            kept=repair.remains,
        )
        return warning("store repaired", found, advice)
    found = Text.of(
        "{cut_bytes} bytes were cut off at the end of its file after a power cut, {made}; {whole_bytes} bytes stayed",
        cut_bytes=report.cut_bytes,
        whole_bytes=report.whole_bytes,
        made=made,
    )
    advice = Text.of(
        "With `appendfsync everysec` the last two seconds are gone, with `always` nothing, unless the storage lost "
        "what it had confirmed. Compare the last jobs with the MES and the equipment, check supply and storage, then "
        "remove the damaged file: rm -r {kept}",
        kept=repair.remains,
    )
    return warning("store repaired", found, advice)


async def _servers(store: Store) -> AsyncIterator[HealthFinding]:
    """Yield the findings about the data nodes and the sentinels of the store."""
    if store.ha is not None:
        await store.ha.sentinels.refresh()
    with contextlib.closing(observer_of(store)) as observer:
        state = await observer.read()
    problems = find_problems(state)
    for problem in problems:
        # The durability of the primary has a finding of its own.
        if problem.kind is not ProblemKind.NO_AOF or problem.subject.startswith("replica"):
            yield (failing if problem.kind in _FAILING else warning)(problem.subject, problem.found, problem.advice)
    kinds = {store_problem.kind for store_problem in problems}
    if store.ha is not None and not kinds & _OF_SENTINELS:
        yield ok(
            "sentinels",
            Text.of(
                "all {count} confirm the primary {primary}", count=len(state.sentinels), primary=store.ha.fence.primary
            ),
        )
    if state.replicas and not kinds & _OF_REPLICAS:
        lags = join_texts(
            ", ",
            (
                Text.of("{address} ({lag} behind)", address=replica.address, lag=lag_text(replica))
                for replica in state.replicas
            ),
        )
        yield ok("replicas", lags)


def _gateways(there: Sequence[str]) -> HealthFinding:
    if there:
        return ok("gateway", Text.of("at work: {there}", there=", ".join(there)))
    return warning("gateway", "no gateway works on this store", gateway_advice())


def _equipment(gateway: str, item: EquipmentHealth) -> HealthFinding:
    """Return the finding about equipment in the report of a gateway."""
    subject = Text.of("equipment {name} of {gateway}", name=item.name, gateway=gateway)
    last = (Text.of("last: {error}", error=item.last_error),) if item.last_error else ()
    unsafe = (problem_of(item.open_safing),) if item.open_safing else ()
    counts = Text.of(
        "open commands: {outstanding}, failed: {failed}, messages refused: {refused}",
        outstanding=item.outstanding,
        failed=item.failed,
        refused=item.refused,
    )
    match item.connected:
        case False:
            what = connection_advice(item.connection.fault)
            advice = Text.of(
                "{what} Jobs wait for it. Check with: edge equipment ping {name}", what=what, name=item.name
            )
            return failing(subject, join_texts("; ", (item.obstacle, *unsafe, counts, *last)), advice)
        case _ if item.open_safing:
            advice = Text.of(
                "Make it safe by hand. What it has not confirmed: edge equipment show {name}", name=item.name
            )
            return failing(subject, join_texts("; ", (*unsafe, counts, *last)), advice)
        case _ if item.refused:
            return warning(
                subject, join_texts("; ", (counts, *last)), "Correct its messages: docs/reference/equipment.md"
            )
        case True:
            return ok(subject, join_texts("; ", (Text.of("connected"), counts, *last)))
        case None:
            holder = item.connection.holder
            state = Text.of("gateway {holder} connects to it", holder=holder) if holder else Text.of("presence unknown")
            return ok(subject, join_texts("; ", (state, counts, *last)))


def _server(info: Mapping[str, str]) -> str:
    if info.get("server_name") == "valkey":
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"


async def _durability(store: Store, info: Mapping[str, str]) -> HealthFinding:
    policy = f"maxmemory-policy {info['maxmemory_policy']}"
    if not int(info["aof_enabled"]):
        advice = "Set `appendonly yes` in the configuration of the Redis server."
        return warning("store durability", "changes are not written to disk: a power cut loses jobs", advice)
    if info["aof_last_write_status"] != "ok" or info["aof_last_bgrewrite_status"] != "ok":
        advice = "Check the log of the Redis server, and the free space of its disk."
        return failing("store durability", "the last attempt to write to its disk failed", advice)
    if await drops_transactions(store, info):
        advice = "Set `user default off ~* &* +@all` in the ACL file of the Redis server."
        found = "a start of the server drops transactions: its user default has too few rights"
        return failing("store durability", found, advice)
    try:
        configured: Mapping[str, str] = await store.execute("CONFIG GET", "appendfsync")
    except EdgeError:  # the user has no permission for CONFIG
        configured = {}
    fsync = configured.get("appendfsync", "") or Text.of("unknown")
    if fsync == "no":
        advice = "Set `appendfsync everysec`, or `always`, in the configuration of the Redis server."
        return warning("store durability", "the system decides when to write: a power cut loses jobs", advice)
    return ok(
        "store durability", Text.of("append-only file, appendfsync {fsync}, {policy}", fsync=fsync, policy=policy)
    )


def _room(taken: MemoryUsage) -> HealthFinding:
    if not taken.limit:
        advice = "Set `maxmemory` of the Redis server, so that jobs are refused before the machine runs out of memory."
        return warning("store memory", Text.of("{used} MiB, without a limit", used=taken.used >> 20), advice)
    found = Text.of(
        "{used} MiB of {limit} MiB ({fullness:.0%})",
        used=taken.used >> 20,
        limit=taken.limit >> 20,
        fullness=taken.fullness,
    )
    advice = "Raise `maxmemory` of the Redis server or shorten [retention]: a full store accepts no new job."
    if taken.fullness >= _FULL:
        return failing("store memory", found, advice)
    return warning("store memory", found, advice) if taken.fullness >= NEARLY_FULL else ok("store memory", found)


def _counts(counts: BoundedCounts) -> Iterator[HealthFinding]:
    """Yield the findings about the records that have a maximum number."""
    if counts.marks.limit:
        advice = Text.of(
            "Find the sender: edge marks list. Or raise [retention] marks: at its limit new orders are refused."
        )
        yield _bounded("marks of messages", counts.marks, advice)
    for sender, own in islice(counts.by_sender.nearly_full.items(), _MOST_SENDERS):
        advice = Text.of(
            "Correct the sender, or drop its marks: edge marks drop {sender}. At its limit it is refused.",
            sender=sender,
        )
        yield _bounded(Text.of("marks of {sender}", sender=sender), own, advice)
    advice = Text.of("Connect the MES, or save them with: edge jobs export FILE --undelivered --confirm")
    for scope, bounded_count in counts.undelivered.items():
        yield _bounded(Text.of("undelivered results of {scope}", scope=scope), bounded_count, advice)
    advice = Text.of(
        "Let the MES confirm results (docs/reference/northbound.md), or save them with: edge jobs export FILE"
    )
    for scope, count in counts.unconfirmed.items():
        if count.is_nearly_full and count != counts.undelivered.get(scope):
            found = Text.of(
                "{count} of at most {limit}: beyond them the oldest delivered ones go",
                count=count.count,
                limit=count.limit,
            )
            yield warning(Text.of("unconfirmed results of {scope}", scope=scope), found, advice)


def _bounded(subject: str | Text, item: BoundedCount, advice: str | Text) -> HealthFinding:
    found = Text.of("{count} of at most {limit}", count=item.count, limit=item.limit)
    if item.is_full:
        return failing(subject, found, advice)
    return warning(subject, found, advice) if item.is_nearly_full else ok(subject, found)


async def _speed(store: Store) -> HealthFinding:
    took = []
    for _ in range(_PINGS):
        began = time.perf_counter()
        await store.execute("PING")
        took.append((time.perf_counter() - began) * 1000)
    found = Text.of(
        "answers in {usual:.2f} ms, {worst:.2f} ms at worst", usual=sorted(took)[_PINGS // 2], worst=max(took)
    )
    if max(took) > _SLOW_MS:
        return warning("store latency", found, "Check the load of the machine and its disk with `vmstat 1`.")
    return ok("store latency", found)
