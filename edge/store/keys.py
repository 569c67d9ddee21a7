"""The keys of the core in Redis, one row each: its type, its name, how long it lives, and what it holds.

A feature has its own in `keys.py` of its folder, which it names in its declaration:

    edge_node = key("hash", "sparkplug", OURS, "The last birth number of the Sparkplug edge node")
    store.execute("HGETALL", edge_node(store.keys))
"""

import functools
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import isfunction
from typing import Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

GROUP = "sfc-engine"
"""The consumer group of the work streams."""

RULES_GROUP = "rules"
"""The consumer group of the stream of samples."""

TRANSIENT: Final = ("lease:", "health:")
"""The beginnings of keys that are not state: leases and health of instances."""

# How long a key lives.
PERMANENT: Final = "until the MES or, of jobs, the retention removes it or its last member"
OURS: Final = "as long as the store; does not grow with the jobs that ran"
JOB: Final = "as long as the job order, which goes `[retention] ended_jobs` after its EndState, or beyond `kept_jobs`"
DEDUPE: Final = "`[retention] dedupe`"
MARKS: Final = "each entry `[retention] dedupe`"
AUDITED: Final = "50 hours after the last was added"
DISCARDED: Final = "an hour after the last was added"
REPUBLISH: Final = "an hour"
STREAM: Final = "bounded by length"
BACKLOG: Final = "each entry until its work is done"
DEAD_LETTERS: Final = "`[retention] dead_letters` after the last was added"
REPORT: Final = "a day after it was written last"
LOGIN: Final = "15 minutes after the wait of the last failed login; 10 minutes for a used code, a day for wrong codes"
RECOVERY: Final = "until the user gets other recovery codes or is removed"
COMPONENT: Final = "each entry 30 days after the last heartbeat, or as `edge fleet forget --after-days` sets"
SESSION: Final = "a minute after its gateway has last renewed it; of a command `[users] session`"

KeyType: TypeAlias = Literal["hash", "list", "set", "stream", "string", "zset"]
_Part: TypeAlias = str | int
_ROWS: dict[Callable[..., str], tuple[KeyType, str, str, str]] = {}

_NUMBER_INSIDE = re.compile(r"_\d+_")


@functools.lru_cache(maxsize=1024)
def key_part(id: str) -> str:
    """Return an id as one part of a key: no two flows, cycles and nodes share a key, whatever their ids are."""
    quoted = id.replace("%", "%25").replace(":", "%3A")
    return quoted.replace("_", "%5F") if _NUMBER_INSIDE.search(f"{quoted}_") else quoted


_Build = TypeVar("_Build", bound=Callable[..., str])


def entered(build: _Build, type: KeyType, name: str, lifetime: str, purpose: str) -> _Build:
    """Enter a key in the table of all, and return what builds its name."""
    _ROWS[build] = type, name, lifetime, purpose
    return build


def key(type: KeyType, name: str, lifetime: str, purpose: str) -> Callable[["Keys"], str]:
    """Enter a key without an id in its name."""
    tail = f":{name}"

    def build(keys: "Keys") -> str:
        return keys.prefix + tail

    return entered(build, type, name, lifetime, purpose)


def key_of(type: KeyType, name: str, lifetime: str, purpose: str) -> Callable[["Keys", _Part], str]:
    """Enter a key with an id in its name."""
    (head, tail), (part,) = _split(name)

    def build(keys: "Keys", id: _Part) -> str:
        return f"{keys.prefix}:{head}{part(id)}{tail}"

    return entered(build, type, name, lifetime, purpose)


def key_of_two(type: KeyType, name: str, lifetime: str, purpose: str) -> Callable[["Keys", _Part, _Part], str]:
    """Enter a key with two ids in its name."""
    (head, middle, tail), (first, second) = _split(name)

    def build(keys: "Keys", id: _Part, other: _Part) -> str:
        return f"{keys.prefix}:{head}{first(id)}{middle}{second(other)}{tail}"

    return entered(build, type, name, lifetime, purpose)


def _split(name: str) -> tuple[list[str], list[Callable[[_Part], str]]]:
    """Return the texts around the ids of a name, and how each id is written: `{id:part}` by `key_part`."""
    texts = re.split(r"{\w+(?::part)?}", name)
    return texts, [_quoted if written else str for written in re.findall(r"{\w+(:part)?}", name)]


def _quoted(id: _Part) -> str:
    return key_part(str(id))


class Keys(Struct, frozen=True):
    """Builds the keys below one prefix; `host_streams`: also write the streams that only other programs read.

    `generation_id` is the generation of the store in which the records of this process are written; empty without
    Sentinel. Each row is a method that takes the ids in the name of its key.
    """

    prefix: str
    host_streams: bool = False
    generation_id: str = ""

    # Jobs and their runs.
    joborder = key_of("hash", "joborder:{id}", JOB, "A job order with its state")
    joborder_list = key_of(
        "zset", "joborder:list:{scope}", PERMANENT, "The ids of the job orders of a scope, by priority"
    )
    joborder_open = key_of(
        "zset",
        "joborder:open:{scope}",
        OURS,
        "The ids of the job orders of a scope that are not in an EndState, by priority",
    )
    joborder_startable = key_of(
        "zset",
        "joborder:startable:{scope}",
        OURS,
        "The queue of starts: the jobs of a scope that may start now, in their order",
    )
    joborder_changes = key_of("stream", "joborder:changes:{scope}", STREAM, "Each change of a job of the scope")
    joborder_changes_global = key("stream", "joborder:changes:_global", STREAM, "Each change of any job")
    jobresponse = key_of("hash", "jobresponse:{id}", JOB, "A job response")
    jobresponse_list = key_of(
        "zset", "jobresponse:list:{scope}", PERMANENT, "The ids of the job responses of a scope, by start time"
    )
    jobresponse_state = key_of_two(
        "zset",
        "jobresponse:list:{scope}:{state}",
        OURS,
        "The ids of the job responses of a scope in that state, by start time",
    )
    counter = key_of("string", "counter:{name}", OURS, "How often something happened")
    event_receiver_list = key(
        "stream", "event:receiver:list", STREAM, "Each transition of a job order, for consumers on this host"
    )
    event_responder_list = key(
        "stream", "event:responder:list", STREAM, "Each change of a job response, for consumers on this host"
    )
    active_scopes = key("set", "active-scopes", OURS, "The scopes that ever held a job")
    sfc_work = key_of("stream", "sfc:work:{scope}", BACKLOG, "The work of a scope, for the consumer group sfc-engine")
    sfc_execution = key_of("hash", "sfc:execution:{job_id}", JOB, "The run of a job")
    sfc_history = key_of(
        "stream",
        "sfc:history:{job_id}",
        JOB,
        "A record of each decision about the run of a job; its ids are number and instant",
    )
    sfc_active_jobs = key(
        "set", "sfc:active-jobs", OURS, "The jobs whose run has not ended, or of which something is to be sent"
    )
    sfc_timers = key("zset", "sfc:timers", OURS, "The jobs by the time of their next start, deadline or removal")
    sfc_waits = key_of_two(
        "zset",
        "sfc:waits:{scope}:{type_id}",
        OURS,
        "The jobs of a scope by the instant since which they wait for an event of that type",
    )

    # Equipment and instances.
    safing = key(
        "hash", "safing", OURS, "The stops and resets that equipment has not confirmed, by phase and command id"
    )
    disabled_tools = key("hash", "disabled-tools", OURS, "The tools that another system has disabled, by their place")
    equipment_memory = key_of(
        "hash",
        "equipment-memory:{name}",
        OURS,
        "What equipment, as `wrench@host:port`, needs later: revisions, last and open results",
    )
    instances = key_of(
        "set", "instances:{scope}", OURS, "The instances that work on a scope, or ended and left work there"
    )
    health = key_of("string", "health:{consumer}", REPORT, "The last report of an instance about its equipment")

    # What is published.
    pubseq = key_of("string", "pubseq:{scope}", OURS, "The number of the state index that was published last")
    publisher_event = key_of_two(
        "string", "publisher:event:{scope}:{position}", REPUBLISH, "A status event as it was published first"
    )
    joborder_undelivered = key_of(
        "zset",
        "joborder:list:{scope}:undelivered",
        OURS,
        "The ended jobs whose result is kept until the MES has received it, by their end",
    )
    joborder_unconfirmed = key_of(
        "zset",
        "joborder:list:{scope}:unconfirmed",
        OURS,
        "The ended jobs whose delivered result is kept until the MES confirms it, by their end",
    )
    archive_gateway = key_of("string", "archive:gateway:{scope}", OURS, "The gateway that archives the jobs of a scope")
    archive_backlog = key_of(
        "hash",
        "archive:backlog:{scope}",
        BACKLOG,
        "The documents of ended jobs that were removed before they were archived, by correlation id",
    )
    publisher_topics = key_of(
        "set", "publisher:topics:{scope}", OURS, "The ids of the jobs whose topics the broker retains"
    )
    publisher_cursors = key(
        "hash",
        "publisher:stream-cursors",
        OURS,
        "The position of the last change published by scope; of events by `{scope}/events`",
    )

    # People and locks.
    audit = key(
        "stream", "audit", STREAM, "The audit trail: who did what, from where, with which result; chained by digests"
    )
    audit_head = key("string", "audit:head", OURS, "Number and digest of the newest audit record")
    locks = key_of(
        "hash", "locks:{kind}", OURS, "The locks of a kind: by object its holder and those that wait, as JSON"
    )

    # Telemetry.
    telemetry = key(
        "stream", "telemetry", STREAM, "The batches of samples and occurrences, for the consumer group rules"
    )
    telemetry_dlq = key(
        "stream",
        "telemetry:dlq",
        STREAM,
        "The batches that could not be evaluated, with the reason and without secrets",
    )
    telemetry_attempts = key("stream", "telemetry:attempts", STREAM, "Each attempt to send an alarm, with its result")
    telemetry_rules = key("hash", "telemetry:rules", PERMANENT, "The rules that the MES has sent, by their ids")
    telemetry_definitions = key(
        "hash",
        "telemetry:definitions",
        PERMANENT,
        "The definitions of tags of station files and of the MES, by tag, as JSON",
    )
    telemetry_counters = key(
        "hash", "telemetry:counters", OURS, "The counters of telemetry, by name; those of a rule by its id"
    )
    telemetry_cursors = key(
        "hash", "telemetry:cursors", OURS, "The last change of an alarm that each reader has handled"
    )

    # Mirrors, servers, tags and alarms.
    mirror = key_of("set", "mirror:{name}", OURS, "A copy of the set that another system keeps")
    mirror_staging = key_of("set", "staging:mirror:{name}", OURS, "The copy while it is written, within one commit")
    lease_mirror = key_of(
        "string",
        "lease:mirror:{name}",
        OURS,
        "The instance that reads a mirrored set, for as long as its own lease lasts",
    )
    mirrors = key(
        "hash", "mirrors", OURS, "The state of each mirror that was read since the start: current or stale, since when"
    )
    opcua_servers = key(
        "hash", "opcua:servers", OURS, "The OPC UA servers of the gateways on this store, by gateway, as JSON"
    )
    tags = key("hash", "tags", OURS, "The last sample of each tag, written every few seconds")
    alarms = key("hash", "alarms", OURS, "The alarms that are not normal, or are silenced, by id")
    alarm_changes = key("stream", "alarms:changes", STREAM, "Each change of an alarm")
    identity = key("string", "identity", OURS, "The identity of the store, made once")

    # Users.
    login_attempt = key_of(
        "string",
        "2fa:{digest}",
        LOGIN,
        "The failed logins of an address or of a user there, or of the wrong codes of a user",
    )
    used_totp = key_of(
        "string", "2fa:totp:{user:part}", LOGIN, "The time step of the last one-time code that a user has used"
    )
    used_recovery = key_of(
        "string", "2fa:recovery:{user:part}", RECOVERY, "The digests of the recovery codes that a user has used"
    )
    session = key_of("string", "session:{id}", SESSION, "A session of station page, OPC UA or command line, as JSON")
    last_activity = key("hash", "last-activity", OURS, "The last activity of each session, as ISO 8601")

    # Components.
    discovery_components = key(
        "hash",
        "discovery:components",
        COMPONENT,
        "What each component of the plant is and how it is, by its id, as JSON",
    )
    discovery_timestamps = key(
        "hash",
        "discovery:timestamps",
        COMPONENT,
        "The last heartbeat of each component, in seconds of the store's clock",
    )
    discovery_tokens = key(
        "hash", "discovery:tokens", COMPONENT, "The process that works under the id of each component"
    )
    discovery_plugins = key(
        "hash",
        "discovery:plugins",
        COMPONENT,
        "The state of the equipment kinds and node kinds of each component, as JSON",
    )
    discovery_settings = key(
        "hash", "discovery:settings", OURS, "The settings of the list of components: `remove_after_s`, at least 60"
    )
    scripts = key("hash", "scripts", OURS, "The script of commits, for programs in other languages, with its SHA-1")

    # Signed commands.

    # Operations and modes.
    operations = key(
        "hash",
        "operations",
        OURS,
        "The operations by id, as JSON: scheduled, running, and the last 100 that have ended",
    )
    operations_progress = key("hash", "operations:progress", OURS, "The progress of each operation, from 0.0 to 100.0")
    operations_queue = key_of(
        "zset",
        "operations:queue:{type}",
        OURS,
        "The scheduled operations of a type, by the instant at which they are due",
    )
    initialized = key(
        "string",
        "initialized",
        OURS,
        "Whether the station files have filled the store: 0 while they do, 1 from then on",
    )
    mode = key("string", "mode", OURS, "The mode of all gateways: 0 works, 1 is under maintenance")
    mode_of = key_of("string", "mode:{gateway}", OURS, "The mode of one gateway: 0 works, 1 is under maintenance")
    maintenance = key(
        "hash", "maintenance", OURS, "Who switched a mode on, since when, until when; by gateway, `*` for all"
    )
    messages = key("hash", "messages", OURS, "The messages to people, by name; `{$Name}` in them is a localised text")
    localization = key("hash", "localization", OURS, "The localised texts of the site, by `[lang:]Name`")

    # What the mes sets.
    workmaster = key_of("hash", "workmaster:{id}", PERMANENT, "A work master with its recipe")
    workmaster_list = key_of(
        "set", "workmaster:list:{scope}", PERMANENT, "The ids of the work masters that a scope may run"
    )
    resource_list = key_of_two(
        "set", "{kind}:list:{scope}", PERMANENT, "The ids of one kind of resource that a scope may use"
    )
    settings_changes = key(
        "stream", "settings:changes", STREAM, "The scopes whose settings the MES changed, each change"
    )
    jobacceptance = key_of(
        "string", "jobacceptance:{scope}", PERMANENT, "The most job orders that a scope holds at a time"
    )

    # Marks, refused messages and dead letters.
    joborder_tombstone = key_of(
        "string",
        "tombstone:{id}",
        DEDUPE,
        "The instant at which the job order of that id was removed, its scope and digests of its results",
    )
    cededupe = key_of(
        "string", "cededupe:{digest}", DEDUPE, "The answer that was given to a CloudEvent, by its source and id"
    )
    transdedupe = key_of(
        "string", "transdedupe:{digest}", DEDUPE, "The answer that was given in a transaction, by its scope and id"
    )
    mark_senders = key("set", "marks", OURS, "The senders of marked messages: `calls:{source}` or `events:{equipment}`")
    marks_of = key_of(
        "stream",
        "marks:{sender:part}",
        MARKS,
        "The marks of a sender: digests of `cededupe` (field e) and `transdedupe` (field t)",
    )
    discarded = key_of_two(
        "hash",
        "discarded:{equipment:part}:{period}",
        DISCARDED,
        "The events of equipment that no job took, by digest; one for each half hour",
    )
    audited = key_of(
        "hash",
        "audited:{period}",
        AUDITED,
        "The calls that a gateway has put in the audit trail, by digest; one for each 25 hours",
    )
    event_refused_list = key("stream", "event:refused:list", STREAM, "Refused messages and declined calls")
    sfc_dead_letters = key("stream", "sfc:dead-letters", DEAD_LETTERS, "What was given up, with the reason")
    late_results = key(
        "stream", "sfc:late-results", DEAD_LETTERS, "The results that no command waited for, with the reason"
    )

    # The store itself.
    store_version = key("string", "form", OURS, "The version of the stored data: see store/server_check.py")
    generation = key(
        "hash",
        "generation",
        OURS,
        "The generation behind Sentinel: its id, the config-epoch, the difference of the clocks",
    )
    replication_mark = key("string", "replication-mark", OURS, "The write before each wait for the replicas")
    lease_instance = key_of(
        "string", "lease:instance:{consumer}", OURS, "The lease of an instance: the token of its process, and a counter"
    )
    lease_publisher = key_of(
        "string",
        "lease:publisher:{scope}",
        OURS,
        "The instance that publishes the changes of a scope, for as long as its own lease lasts",
    )


class KeySpec(Struct, frozen=True):
    """One kind of key; `pattern` is what follows the prefix, `name` is the method of Keys that builds it."""

    name: str
    pattern: str
    type: KeyType
    lifetime: str
    purpose: str

    def expression(self) -> re.Pattern[str]:
        """Return what fits the names of such keys, without their prefix."""
        return re.compile(re.sub(r"\\{\w+\\}", "(?s:.+)", re.escape(self.pattern)))


_feature_modules: Final[dict[str, None]] = {}


def declare_keys(modules: Iterable[str]) -> None:
    """Add modules in which features define their keys; they are imported when all keys are asked for."""
    _feature_modules.update(dict.fromkeys(modules))


def key_specs() -> tuple[KeySpec, ...]:
    """Return every kind of key, in the order of the rows: those of the core, then those of the declared features."""
    places = (vars(Keys), *(vars(import_module(name)) for name in _feature_modules))
    rows = ((name, _ROWS[build]) for place in places for name, build in place.items() if _is_row(build))
    return tuple(
        KeySpec(name, pattern.replace(":part}", "}"), type, lifetime, purpose)
        for name, (type, pattern, lifetime, purpose) in rows
    )


def _is_row(value: object) -> bool:
    return isfunction(value) and value in _ROWS
