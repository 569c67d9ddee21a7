"""Every key in Redis, with its type and lifetime; the base classes have those of messages, settings and operations."""

import functools
import inspect
from collections.abc import Callable

from edge.store.key_spec import BUILDERS, KeySpec, KeyType, Lifetime, key_part, node_task_id
from edge.store.key_spec import register_key as _key
from edge.store.shared_keys import ServerKeys


class Keys(ServerKeys, frozen=True):
    """Builds the keys below one prefix; `host_streams`: also write the streams that only other programs read.

    `generation_id` is the generation of the store in which the records of this process are written; empty without
    Sentinel.
    """

    host_streams: bool = False
    generation_id: str = ""

    @_key("hash", Lifetime.JOB)
    def joborder(self, id: str) -> str:
        """Return the key of a job order with its state."""
        return f"{self.prefix}:joborder:{id}"

    @_key("zset", Lifetime.PERMANENT)
    def joborder_list(self, scope: str) -> str:
        """Return the key of the ids of the job orders of a scope, by priority."""
        return f"{self.prefix}:joborder:list:{scope}"

    @_key("zset", Lifetime.OURS)
    def joborder_open(self, scope: str) -> str:
        """Return the key of the ids of the job orders of a scope that are not in an EndState, by priority."""
        return f"{self.prefix}:joborder:open:{scope}"

    @_key("zset", Lifetime.OURS)
    def joborder_startable(self, scope: str) -> str:
        """Return the key of the queue of starts: the jobs of a scope that may start now, in their order."""
        return f"{self.prefix}:joborder:startable:{scope}"

    @_key("stream", Lifetime.STREAM)
    def joborder_changes(self, scope: str) -> str:
        """Return the key of each change of a job of the scope."""
        return f"{self.prefix}:joborder:changes:{scope}"

    @_key("stream", Lifetime.STREAM)
    def joborder_changes_global(self) -> str:
        """Return the key of each change of any job."""
        return f"{self.prefix}:joborder:changes:_global"

    @_key("hash", Lifetime.JOB)
    def jobresponse(self, id: str) -> str:
        """Return the key of a job response."""
        return f"{self.prefix}:jobresponse:{id}"

    @_key("zset", Lifetime.PERMANENT)
    def jobresponse_list(self, scope: str) -> str:
        """Return the key of the ids of the job responses of a scope, by start time."""
        return f"{self.prefix}:jobresponse:list:{scope}"

    @_key("zset", Lifetime.OURS)
    def jobresponse_state(self, scope: str, state: str) -> str:
        """Return the key of the ids of the job responses of a scope in that state, by start time."""
        return f"{self.prefix}:jobresponse:list:{scope}:{state}"

    @_key("string", Lifetime.OURS)
    def counter(self, name: str) -> str:
        """Return the key of how often something happened."""
        return f"{self.prefix}:counter:{name}"

    @_key("stream", Lifetime.STREAM)
    def event_receiver_list(self) -> str:
        """Return the key of each transition of a job order, for consumers on this host."""
        return f"{self.prefix}:event:receiver:list"

    @_key("stream", Lifetime.STREAM)
    def event_responder_list(self) -> str:
        """Return the key of each change of a job response, for consumers on this host."""
        return f"{self.prefix}:event:responder:list"

    @_key("set", Lifetime.OURS)
    def active_scopes(self) -> str:
        """Return the key of the scopes that ever held a job."""
        return f"{self.prefix}:active-scopes"

    @_key("stream", Lifetime.BACKLOG)
    def sfc_work(self, scope: str) -> str:
        """Return the key of the work of a scope, for the consumer group sfc-engine."""
        return f"{self.prefix}:sfc:work:{scope}"

    @_key("hash", Lifetime.JOB)
    def sfc_execution(self, job_id: str) -> str:
        """Return the key of the run of a job."""
        return f"{self.prefix}:sfc:execution:{job_id}"

    @_key("stream", Lifetime.JOB)
    def sfc_history(self, job_id: str) -> str:
        """Return the key of a record of each decision about the run of a job; its ids are number and instant."""
        return f"{self.prefix}:sfc:history:{job_id}"

    @_key("set", Lifetime.OURS)
    def sfc_active_jobs(self) -> str:
        """Return the key of the jobs whose run has not ended, or of which something is to be sent."""
        return f"{self.prefix}:sfc:active-jobs"

    @_key("zset", Lifetime.OURS)
    def sfc_timers(self) -> str:
        """Return the key of the jobs by the time of their next start, deadline or removal."""
        return f"{self.prefix}:sfc:timers"

    @_key("zset", Lifetime.OURS)
    def sfc_waits(self, scope: str, type_id: str) -> str:
        """Return the key of the jobs of a scope by the instant since which they wait for an event of that type."""
        return f"{self.prefix}:sfc:waits:{scope}:{type_id}"

    @_key("hash", Lifetime.OURS)
    def safing(self) -> str:
        """Return the key of the stops and resets that equipment has not confirmed, by phase and command id."""
        return f"{self.prefix}:safing"

    @_key("hash", Lifetime.OURS)
    def disabled_tools(self) -> str:
        """Return the key of the tools that another system has disabled, by their place."""
        return f"{self.prefix}:disabled-tools"

    @_key("hash", Lifetime.OURS)
    def equipment_memory(self, name: str) -> str:
        """Return the key of what equipment, as `wrench@host:port`, needs later: revisions, last and open results."""
        return f"{self.prefix}:equipment-memory:{name}"

    @_key("set", Lifetime.OURS)
    def instances(self, scope: str) -> str:
        """Return the key of the instances that work on a scope, or ended and left work there."""
        return f"{self.prefix}:instances:{scope}"

    @_key("hash", Lifetime.OURS)
    def lease_equipment(self, place: str) -> str:
        """Return the key of the instances that connect to equipment at a place, each for as long as its own lease."""
        return f"{self.prefix}:lease:equipment:{key_part(place)}"

    @_key("list", Lifetime.OURS)
    def passed_commands(self, consumer: str, place: str) -> str:
        """Return the key of the commands that other instances pass to the one that connects to equipment."""
        return f"{self.prefix}:passed-commands:{consumer}:{key_part(place)}"

    @_key("string", Lifetime.REPORT)
    def health(self, consumer: str) -> str:
        """Return the key of the last report of an instance about its equipment."""
        return f"{self.prefix}:health:{consumer}"

    @_key("string", Lifetime.OURS)
    def pubseq(self, scope: str) -> str:
        """Return the key of the number of the state index that was published last."""
        return f"{self.prefix}:pubseq:{scope}"

    @_key("string", Lifetime.REPUBLISH)
    def publisher_event(self, scope: str, position: str) -> str:
        """Return the key of a status event as it was published first."""
        return f"{self.prefix}:publisher:event:{scope}:{position}"

    @_key("zset", Lifetime.OURS)
    def joborder_undelivered(self, scope: str) -> str:
        """Return the key of the ended jobs whose result is kept until the MES has received it, by their end."""
        return f"{self.prefix}:joborder:list:{scope}:undelivered"

    @_key("zset", Lifetime.OURS)
    def joborder_unconfirmed(self, scope: str) -> str:
        """Return the key of the ended jobs whose delivered result is kept until the MES confirms it, by their end."""
        return f"{self.prefix}:joborder:list:{scope}:unconfirmed"

    @_key("set", Lifetime.OURS)
    def publisher_topics(self, scope: str) -> str:
        """Return the key of the ids of the jobs whose topics the broker retains."""
        return f"{self.prefix}:publisher:topics:{scope}"

    @_key("hash", Lifetime.OURS)
    def publisher_cursors(self) -> str:
        """Return the key of the position of the last change published by scope; of events by `{scope}/events`."""
        return f"{self.prefix}:publisher:stream-cursors"

    @_key("stream", Lifetime.STREAM)
    def audit(self) -> str:
        """Return the key of the audit trail: who did what, from where, with which result; chained by digests."""
        return f"{self.prefix}:audit"

    @_key("string", Lifetime.OURS)
    def audit_head(self) -> str:
        """Return the key of number and digest of the newest audit record."""
        return f"{self.prefix}:audit:head"

    @_key("hash", Lifetime.OURS)
    def locks(self, kind: str) -> str:
        """Return the key of the locks of a kind: by object its holder and those that wait, as JSON."""
        return f"{self.prefix}:locks:{kind}"

    @_key("hash", Lifetime.FLOW)
    def flow(self, flow: str) -> str:
        """Return the key of a flow with its document and state."""
        return f"{self.prefix}:flow:{key_part(flow)}"

    @_key("hash", Lifetime.CYCLE)
    def flow_cycle(self, flow: str, cycle: int) -> str:
        """Return the key of a cycle of a flow."""
        return f"{self.prefix}:flow:{key_part(flow)}:cycle:{cycle}"

    @_key("string", Lifetime.NODE_TASK)
    def node_task(self, flow: str, cycle: int, node: str) -> str:
        """Return the key of a node task with its state, as JSON."""
        return f"{self.prefix}:node_tasks:{node_task_id(flow, cycle, node)}"

    @_key("string", Lifetime.NODE_TASK)
    def node_output(self, flow: str, cycle: int, node: str) -> str:
        """Return the key of an output of more than 64 KiB, as JSON."""
        return f"{self.prefix}:node_tasks:{node_task_id(flow, cycle, node)}:output"

    @_key("string", Lifetime.ATTEMPT)
    def node_worker(self, flow: str, cycle: int, node: str) -> str:
        """Return the key of the worker that runs a node task, with its progress, as JSON."""
        return f"{self.prefix}:node_tasks:{node_task_id(flow, cycle, node)}:worker"

    @_key("string", Lifetime.ATTEMPT)
    def node_answer(self, task: str) -> str:
        """Return the key of the answer of equipment to a command of a node task, as JSON."""
        return f"{self.prefix}:node_tasks:{task}:answer"

    @_key("stream", Lifetime.BACKLOG)
    def node_work(self, kind: str) -> str:
        """Return the key of the node tasks of a kind for the consumer group of the workers."""
        return f"{self.prefix}:node_work:{kind}"

    @_key("stream", Lifetime.BACKLOG)
    def node_results(self) -> str:
        """Return the key of the results of workers that no gateway has taken yet."""
        return f"{self.prefix}:node_results"

    @_key("string", Lifetime.WORKER)
    def worker(self, id: str) -> str:
        """Return the key of a worker with its kinds and its last heartbeat, as JSON."""
        return f"{self.prefix}:workers:{id}"

    @_key("zset", Lifetime.OURS)
    def flow_schedule(self) -> str:
        """Return the key of all flows by the instant of their next cycle."""
        return f"{self.prefix}:flows:schedule"

    @_key("set", Lifetime.OURS)
    def flows_running(self) -> str:
        """Return the key of the flows that have a running cycle."""
        return f"{self.prefix}:flows:running"

    @_key("stream", Lifetime.STREAM)
    def flow_signals(self) -> str:
        """Return the key of the flows that a process other than their gateway changed."""
        return f"{self.prefix}:flows:signals"

    @_key("stream", Lifetime.STREAM)
    def telemetry(self) -> str:
        """Return the key of the batches of samples and occurrences, for the consumer group rules."""
        return f"{self.prefix}:telemetry"

    @_key("stream", Lifetime.STREAM)
    def telemetry_dlq(self) -> str:
        """Return the key of the batches that could not be evaluated, with the reason and without secrets."""
        return f"{self.prefix}:telemetry:dlq"

    @_key("stream", Lifetime.STREAM)
    def telemetry_attempts(self) -> str:
        """Return the key of each attempt to send an alarm, with its result."""
        return f"{self.prefix}:telemetry:attempts"

    @_key("hash", Lifetime.PERMANENT)
    def telemetry_rules(self) -> str:
        """Return the key of the rules that the MES has sent, by their ids."""
        return f"{self.prefix}:telemetry:rules"

    @_key("hash", Lifetime.PERMANENT)
    def telemetry_definitions(self) -> str:
        """Return the key of the definitions of tags of station files and of the MES, by tag, as JSON."""
        return f"{self.prefix}:telemetry:definitions"

    @_key("hash", Lifetime.OURS)
    def telemetry_state(self) -> str:
        """Return the key of the states of rules, by rule and subject, and of the jobs that run."""
        return f"{self.prefix}:telemetry:state"

    @_key("list", Lifetime.OURS)
    def telemetry_window(self, digest: str) -> str:
        """Return the key of the window of a baseline rule for a subject, the oldest sample first."""
        return f"{self.prefix}:telemetry:window:{digest}"

    @_key("hash", Lifetime.OURS)
    def telemetry_counters(self) -> str:
        """Return the key of the counters of telemetry, by name; those of a rule by its id."""
        return f"{self.prefix}:telemetry:counters"

    @_key("hash", Lifetime.OURS)
    def telemetry_cursors(self) -> str:
        """Return the key of the last change of an alarm that each reader has handled."""
        return f"{self.prefix}:telemetry:cursors"

    @_key("set", Lifetime.OURS)
    def mirror(self, name: str) -> str:
        """Return the key of a copy of the set that another system keeps."""
        return f"{self.prefix}:mirror:{name}"

    @_key("set", Lifetime.OURS)
    def mirror_staging(self, name: str) -> str:
        """Return the key of the copy while it is written, within one commit."""
        return f"{self.prefix}:staging:mirror:{name}"

    @_key("string", Lifetime.OURS)
    def lease_mirror(self, name: str) -> str:
        """Return the key of the instance that reads a mirrored set, for as long as its own lease lasts."""
        return f"{self.prefix}:lease:mirror:{name}"

    @_key("hash", Lifetime.OURS)
    def mirrors(self) -> str:
        """Return the key of the state of each mirror that was read since the start: current or stale, since when."""
        return f"{self.prefix}:mirrors"

    @_key("hash", Lifetime.OURS)
    def opcua_servers(self) -> str:
        """Return the key of the OPC UA servers of the gateways on this store, by gateway, as JSON."""
        return f"{self.prefix}:opcua:servers"

    @_key("hash", Lifetime.OURS)
    def sparkplug(self) -> str:
        """Return the key of the last birth number of the Sparkplug edge node, and of what it has published."""
        return f"{self.prefix}:sparkplug"

    @_key("hash", Lifetime.OURS)
    def tags(self) -> str:
        """Return the key of the last sample of each tag, written every few seconds."""
        return f"{self.prefix}:tags"

    @_key("hash", Lifetime.OURS)
    def alarms(self) -> str:
        """Return the key of the alarms that are not normal, or are silenced, by id."""
        return f"{self.prefix}:alarms"

    @_key("stream", Lifetime.STREAM)
    def alarm_changes(self) -> str:
        """Return the key of each change of an alarm."""
        return f"{self.prefix}:alarms:changes"

    @_key("string", Lifetime.OURS)
    def identity(self) -> str:
        """Return the key of the identity of the store, made once."""
        return f"{self.prefix}:identity"


def _spec(build: Callable[..., str], type: KeyType, lifetime: Lifetime) -> KeySpec:
    _, *fields = inspect.signature(build).parameters
    pattern = build(Keys(""), *(f"{{{field}}}" for field in fields)).removeprefix(":")
    purpose = (build.__doc__ or "").removeprefix("Return the key of ").removesuffix(".")
    return KeySpec(build.__name__, pattern, type, lifetime, purpose[:1].upper() + purpose[1:])


@functools.cache
def key_specs() -> tuple[KeySpec, ...]:
    """Return every kind of key."""
    builders = sorted(BUILDERS, key=lambda row: not row[0].__qualname__.startswith(Keys.__name__))
    return tuple(_spec(*builder) for builder in builders)


GROUP = "sfc-engine"
"""The consumer group of the work streams."""

RULES_GROUP = "rules"
"""The consumer group of the stream of samples."""
