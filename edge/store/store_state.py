"""The state of the store as one value: data nodes, sentinels, fence, generation, and what needs attention.

`edge store status`, `edge doctor`, alarms, metrics and the page *Gateway* read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from edge.foundation.text import Text, as_text
from edge.store.fence import quorum_advice
from edge.store.sentinels import Primary, ReplicaView, SentinelReport, SentinelView, agreed
from edge.store.server_check import MemoryUsage
from edge.store.server_time import MOST_DIFFERENCE_MS

MOST_LAG_BYTES: Final = 10_000_000
MOST_LAG_S: Final = 10.0
LEAST_SENTINELS: Final = 3
LEAST_REPLICAS_REPLICATED: Final = 2
"""With `durability = "replicated"` each replica has to confirm: with one only, its loss stops the line."""


class NodeReport(Struct, frozen=True, kw_only=True):
    """What a data node answers of itself; `error` says why it does not, `advice` which setting is the cause.

    `clock_s` is what its clock is ahead of ours. `acknowledged` has, at a primary, the offset of each replica and the
    seconds since it confirmed it.
    """

    address: str
    error: str | Text = ""
    advice: str | Text = ""
    server: str = ""
    role: str = ""
    primary: str = ""
    is_linked: bool = False
    link_down_s: float = 0.0
    offset: int = 0
    acknowledged: Mapping[str, tuple[int, float]] = {}
    has_aof: bool | None = False
    clock_s: float = 0.0
    memory: MemoryUsage = MemoryUsage(0, 0)


class FenceState(Struct, frozen=True):
    """For how many seconds a majority confirms the primary; `reason` says why it does not."""

    confirmed_s: float = field(name="confirmed_seconds")
    reason: str | Text = ""


class GenerationState(Struct, frozen=True):
    """The generation of the store; `begun_at` is in milliseconds since the epoch, None when it is not known."""

    id: str
    config_epoch: int
    begun_at: int | None


class PrimaryState(Struct, frozen=True, kw_only=True):
    """The primary; `config_epoch` counts failovers and is None without Sentinel."""

    address: str
    error: str | Text
    advice: str | Text = ""
    server: str
    config_epoch: int | None
    is_primary: bool
    has_aof: bool | None
    clock_s: float | None = field(name="clock_seconds")
    memory: MemoryUsage


class ReplicaState(Struct, frozen=True, kw_only=True):
    """A replica; what is None is not known. One with priority 0 is never promoted."""

    address: str
    error: str | Text
    advice: str | Text = ""
    is_linked: bool
    is_down: bool
    lag_bytes: int | None
    lag_s: float | None = field(name="lag_seconds")
    has_aof: bool | None
    clock_s: float | None = field(name="clock_seconds")
    priority: int


class SentinelState(Struct, frozen=True, kw_only=True):
    """A sentinel; `primary` is the one that it names, empty when it does not answer."""

    address: str
    error: str | Text
    advice: str | Text = ""
    primary: str
    reaches_primary: bool
    quorum: int


class StoreState(Struct, frozen=True, kw_only=True):
    """The whole state; without Sentinel there are no replicas, no sentinels, no fence and no generation."""

    durability: str
    primary: PrimaryState | None
    service: str = ""
    """The name by which the sentinels monitor the primary."""
    replicas: tuple[ReplicaState, ...] = ()
    sentinels: tuple[SentinelState, ...] = ()
    quorum: int = 0
    majority: int = 0
    fence: FenceState | None = None
    generation: GenerationState | None = None

    @property
    def answering(self) -> int:
        """The number of sentinels that answer."""
        return sum(not sentinel.error for sentinel in self.sentinels)


class ProblemKind(StrEnum):
    """What can be wrong with a store; each kind of the first five has a built-in alarm."""

    NO_MAJORITY = "no_majority"
    REPLICA_AWAY = "replica_away"
    REPLICA_LAGS = "replica_lags"
    CLOCK_DIFFERS = "clock_differs"
    NO_AOF = "no_aof"
    SENTINEL_AWAY = "sentinel_away"
    PRIMARY_AWAY = "primary_away"
    QUORUM = "quorum"
    FEW_SENTINELS = "few_sentinels"
    FEW_NODES = "few_nodes"
    PRIORITIES = "priorities"


class StoreProblem(Struct, frozen=True):
    """A problem with the store, and what to do; `subject` names the server or the setting."""

    kind: ProblemKind
    subject: str
    found: str | Text
    advice: Text


def state_of(
    sentinels: Sequence[SentinelReport],
    nodes: Mapping[str, NodeReport],
    *,
    durability: str,
    service: str = "",
    fence: FenceState | None = None,
    generation: GenerationState | None = None,
) -> StoreState:
    """Return the state by the answers of sentinels and data nodes; without Sentinel there is one node, the primary."""
    if fence is None:
        primary = next((_primary(node, None) for node in nodes.values()), None)
        return StoreState(durability=durability, primary=primary)
    answers = [sentinel.view for sentinel in sentinels if sentinel.view and not sentinel.error]
    known = {f"{host}:{port}" for view in answers for host, port in view.known.values()}
    # One that was removed is silent, and no other sentinel knows it any more.
    sentinel_reports = [
        sentinel for sentinel in sentinels if not sentinel.error or sentinel.address in known or not answers
    ]
    named = agreed(answers)
    own = nodes.get(str(named)) if named else None
    return StoreState(
        durability=durability,
        service=service,
        primary=_primary(own, named) if own else None,
        replicas=tuple(_replica(views, nodes, own) for views in _by_replica(answers, named).values()),
        sentinels=tuple(_sentinel(report) for report in sentinel_reports),
        quorum=min((view.quorum for view in answers), default=0),
        majority=max((view.majority for view in answers), default=len(sentinel_reports) // 2 + 1),
        fence=fence,
        generation=generation,
    )


def replicas_of(views: Sequence[SentinelView]) -> Mapping[str, tuple[str, int]]:
    """Return the replicas of the agreed primary by their addresses."""
    return {name: replica_views[0].place for name, replica_views in _by_replica(views, agreed(views)).items()}


def _by_replica(views: Sequence[SentinelView], primary: Primary | None) -> Mapping[str, list[ReplicaView]]:
    found: dict[str, list[ReplicaView]] = {}
    for view in views:
        if view.primary == primary:
            for replica in view.replicas:
                if str(replica) != str(primary):
                    found.setdefault(str(replica), []).append(replica)
    return dict(sorted(found.items()))


def _primary(report: NodeReport, named: Primary | None) -> PrimaryState:
    return PrimaryState(
        address=report.address,
        error=report.error,
        advice=report.advice,
        server=report.server,
        config_epoch=named.config_epoch if named else None,
        is_primary=report.role == "master",
        has_aof=None if report.error else report.has_aof,
        clock_s=None if report.error else report.clock_s,
        memory=report.memory,
    )


def _replica(views: Sequence[ReplicaView], nodes: Mapping[str, NodeReport], primary: NodeReport | None) -> ReplicaState:
    address = str(views[0])
    report = nodes.get(address, NodeReport(address=address, error=Text.of("not asked")))
    answers = not report.error
    acknowledged = primary.acknowledged.get(address) if primary else None
    lag_bytes = lag_s = None
    if acknowledged is not None and primary is not None:
        offset = max(acknowledged[0], report.offset if answers else 0)
        lag_bytes, lag_s = max(0, primary.offset - offset), acknowledged[1]
    elif answers and primary is not None and not primary.error:
        lag_bytes, lag_s = max(0, primary.offset - report.offset), report.link_down_s
    follows = primary is None or report.primary in {"", primary.address}
    return ReplicaState(
        address=address,
        error=report.error,
        advice=report.advice,
        is_linked=answers and report.is_linked and follows,
        is_down=all(view.is_down for view in views),
        lag_bytes=lag_bytes,
        lag_s=lag_s,
        has_aof=report.has_aof if answers else None,
        clock_s=report.clock_s if answers else None,
        priority=views[0].priority,
    )


def _sentinel(report: SentinelReport) -> SentinelState:
    view = None if report.error else report.view
    return SentinelState(
        address=report.address,
        error=report.error,
        advice=report.advice,
        primary=str(view.primary) if view else "",
        reaches_primary=view is not None and view.reaches_primary,
        quorum=view.quorum if view else 0,
    )


def find_problems(state: StoreState) -> tuple[StoreProblem, ...]:
    """Return what is wrong with the store, the worst first."""
    return (*_of_store(state), *_of_primary(state), *_of_sentinels(state), *_of_replicas(state))


def _of_store(state: StoreState) -> Iterator[StoreProblem]:
    if state.fence and state.fence.reason:
        text = Text.of("the primary is not confirmed: {reason}", reason=state.fence.reason)
        wait = Text.of("Work waits until a majority does. Start the sentinels that are away. See: edge store status")
        advice = next((as_text(sentinel.advice) for sentinel in state.sentinels if sentinel.advice), wait)
        yield StoreProblem(ProblemKind.NO_MAJORITY, "store", text, advice)


def _of_primary(state: StoreState) -> Iterator[StoreProblem]:
    primary = state.primary
    if primary is None:
        return
    subject = f"primary {primary.address}" if state.fence else "store server"
    if primary.error:
        text = Text.of("the primary {address} does not answer: {reason}", address=primary.address, reason=primary.error)
        if primary.advice:
            text = Text.of(
                "the primary {address} is not usable: {reason}", address=primary.address, reason=primary.error
            )
        advice = primary.advice or Text.of("Check its service and the network.")
        yield StoreProblem(ProblemKind.PRIMARY_AWAY, subject, text, as_text(advice))
        return
    if not primary.is_primary:
        text = Text.of("{address} is a replica, not the primary", address=primary.address)
        advice = (
            Text.of("Sentinel corrects this within seconds.")
            if state.fence
            else Text.of("Point [redis] url at the primary server.")
        )
        yield StoreProblem(ProblemKind.PRIMARY_AWAY, subject, text, advice)
    yield from _of_node(subject, primary, needs_aof=state.durability != "any")


def _of_node(subject: str, node: PrimaryState | ReplicaState, *, needs_aof: bool) -> Iterator[StoreProblem]:
    if needs_aof and node.has_aof is False:
        text = Text.of(
            "{address} keeps no append-only file: a power cut loses jobs while it is the primary", address=node.address
        )
        yield StoreProblem(ProblemKind.NO_AOF, subject, text, Text.of("Set `appendonly yes` in its configuration."))
    if node.clock_s is not None and abs(node.clock_s) * 1000 > MOST_DIFFERENCE_MS:
        address, seconds = node.address, abs(node.clock_s)
        ahead = Text.of(
            "the clock of {address} is {seconds:.1f} s ahead of that of this machine", address=address, seconds=seconds
        )
        behind = Text.of(
            "the clock of {address} is {seconds:.1f} s behind that of this machine", address=address, seconds=seconds
        )
        text = ahead if node.clock_s > 0 else behind
        advice = Text.of("Synchronise the clocks of both machines (chrony, NTP).")
        yield StoreProblem(ProblemKind.CLOCK_DIFFERS, subject, text, advice)


def _of_sentinels(state: StoreState) -> Iterator[StoreProblem]:
    if state.fence is None:
        return
    for sentinel in state.sentinels:
        if sentinel.error:
            advice = sentinel.advice or Text.of("Start it: without a majority of them the line stands still.")
            subject = f"sentinel {sentinel.address}"
            yield StoreProblem(ProblemKind.SENTINEL_AWAY, subject, sentinel.error, as_text(advice))
    if state.answering and state.quorum < state.majority:
        text = Text.of(
            "the quorum is {quorum}, less than {majority}, the majority of the sentinels",
            quorum=state.quorum,
            majority=state.majority,
        )
        advice = quorum_advice(state.service, state.majority)
        yield StoreProblem(ProblemKind.QUORUM, "sentinel quorum", text, advice)
    if len(state.sentinels) < LEAST_SENTINELS:
        text = Text.of("only {count}: after the loss of one no majority is left", count=len(state.sentinels))
        advice = Text.of("Run three sentinels on three machines.")
        yield StoreProblem(ProblemKind.FEW_SENTINELS, "sentinels", text, advice)


def _of_replicas(state: StoreState) -> Iterator[StoreProblem]:
    if state.answering and not state.replicas:
        text = Text.of("no replica: the loss of the primary stops the line")
        yield StoreProblem(ProblemKind.REPLICA_AWAY, "replicas", text, Text.of("Start a replica of the primary."))
    for replica in state.replicas:
        subject = f"replica {replica.address}"
        if replica.error or replica.is_down or not replica.is_linked:
            unlinked = (
                Text.of("no sentinel reaches it") if replica.is_linked else Text.of("it has no link to the primary")
            )
            reason = replica.error or unlinked
            text = Text.of("the replica {address} is away: {reason}", address=replica.address, reason=reason)
            advice = replica.advice or Text.of("Check its service, its log and the network.")
            yield StoreProblem(ProblemKind.REPLICA_AWAY, subject, text, as_text(advice))
        elif (replica.lag_bytes or 0) > MOST_LAG_BYTES or (replica.lag_s or 0.0) > MOST_LAG_S:
            lag = lag_text(replica)
            text = Text.of("the replica {address} lags behind by {lag}", address=replica.address, lag=lag)
            advice = Text.of("Check the network and the load of its machine.")
            yield StoreProblem(ProblemKind.REPLICA_LAGS, subject, text, advice)
        yield from _of_node(subject, replica, needs_aof=state.durability != "any" and replica.priority > 0)
    if state.durability == "replicated":
        yield from _of_replication(
            [replica_state.priority for replica_state in state.replicas if replica_state.priority > 0]
        )


def _of_replication(priorities: Sequence[int]) -> Iterator[StoreProblem]:
    """Yield the problems of `durability = "replicated"` by the priorities of the replicas that may be promoted."""
    if 0 < len(priorities) < LEAST_REPLICAS_REPLICATED:
        text = Text.of('two with durability = "replicated": the loss of one stops the line')
        yield StoreProblem(ProblemKind.FEW_NODES, "data nodes", text, Text.of("Add a third data node."))
    if len(set(priorities)) > 1:
        text = Text.of(
            "their priorities are {priorities}: a failover may promote one that is behind",
            priorities=", ".join(map(str, priorities)),
        )
        advice = Text.of("Set one `replica-priority` for all, and 0 for those that must not be promoted.")
        yield StoreProblem(ProblemKind.PRIORITIES, "replicas", text, advice)


def lag_text(replica: ReplicaState) -> str:
    """Return the lag of a replica in words; empty when it is not known."""
    if replica.lag_bytes is None or replica.lag_s is None:
        return ""
    return f"{byte_count(replica.lag_bytes)}, {replica.lag_s:.0f} s"


def byte_count(count: int) -> str:
    """Return a number of bytes in words."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


_POWER_CUT_LOSES: Final = "may lose the last two seconds; nothing with `appendfsync always`"
_MAY_LOSE: Final = {
    "any": "the server may be one that forgets: a power cut or a full memory may lose accepted jobs",
    "required": f"a power cut {_POWER_CUT_LOSES}",
    "replicated": (
        "nothing accepted is lost by a failover: a job is answered after the replicas have it; "
        f"a power cut of all machines {_POWER_CUT_LOSES}"
    ),
}
_FAILOVER_LOSES: Final = (
    "a failover may lose what the replicas have not received; a partition what was accepted within `down-after`; "
)
_MAY_LOSE_BEHIND_SENTINEL: Final = {
    **_MAY_LOSE,
    "any": f"{_FAILOVER_LOSES}the servers may be ones that forget: a power cut or a full memory may lose accepted jobs",
    "required": f"{_FAILOVER_LOSES}a power cut of all machines {_POWER_CUT_LOSES}",
}


def may_lose(state: StoreState) -> str:
    """Return in one sentence what the durability of the settings may lose."""
    return (_MAY_LOSE if state.fence is None else _MAY_LOSE_BEHIND_SENTINEL)[state.durability]
