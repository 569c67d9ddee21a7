"""Every key in Redis, with its type and its lifetime."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Lifetime(StrEnum):
    """How long a key lives."""

    PERMANENT = "until the MES removes what it stands for"
    OURS = "as long as the store; does not grow with the jobs that ran"
    JOB = "as long as the job order, which is removed `[retention] ended_jobs` after its EndState"
    DEDUPE = "`[retention] dedupe`"
    STREAM = "bounded by length"
    BACKLOG = "as long as it holds unacknowledged work"
    LEASE = "seconds after its holder has last been there"
    DEAD_LETTERS = "`[retention] dead_letters` after the last was added"
    REPORT = "a day after it was written last"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One kind of key; `pattern` is what follows the prefix, `name` is the method of Keys that builds it."""

    name: str
    pattern: str
    type: str
    lifetime: Lifetime
    purpose: str

    def expression(self) -> re.Pattern[str]:
        """Give what fits the names of such keys, without their prefix."""
        return re.compile(re.sub(r"\\{\w+\\}", "(?s:.+)", re.escape(self.pattern)))


KEYS: tuple[KeySpec, ...] = (
    KeySpec("joborder", "joborder:{id}", "hash", Lifetime.JOB, "job order and its state"),
    KeySpec("joborder_list", "joborder:list:{scope}", "zset", Lifetime.PERMANENT, "job order ids by priority"),
    KeySpec("joborder_open", "joborder:open:{scope}", "zset", Lifetime.OURS, "those not in an EndState"),
    KeySpec("joborder_startable", "joborder:startable:{scope}", "zset", Lifetime.OURS, "the queue of starts"),
    KeySpec("joborder_changes", "joborder:changes:{scope}", "stream", Lifetime.STREAM, "every change of a job"),
    KeySpec(
        "joborder_changes_global",
        "joborder:changes:_global",
        "stream",
        Lifetime.STREAM,
        "the same, all scopes",
    ),
    KeySpec("jobresponse", "jobresponse:{id}", "hash", Lifetime.JOB, "job response"),
    KeySpec(
        "jobresponse_list",
        "jobresponse:list:{scope}",
        "zset",
        Lifetime.PERMANENT,
        "response ids by start time",
    ),
    KeySpec("workmaster", "workmaster:{id}", "hash", Lifetime.PERMANENT, "work master with its recipe"),
    KeySpec("workmaster_list", "workmaster:list:{scope}", "set", Lifetime.PERMANENT, "work master ids"),
    KeySpec("resource_list", "{kind}:list:{scope}", "set", Lifetime.PERMANENT, "ids of one kind of resource"),
    KeySpec("jobacceptance", "jobacceptance:{scope}", "string", Lifetime.PERMANENT, "most job orders at a time"),
    KeySpec("cededupe", "cededupe:{hash}", "string", Lifetime.DEDUPE, "a CloudEvent's effect, by source and id"),
    KeySpec("transdedupe", "transdedupe:{hash}", "string", Lifetime.DEDUPE, "a transaction's answer, by scope and id"),
    KeySpec("counter", "counter:{name}", "string", Lifetime.OURS, "how often something happened"),
    KeySpec("event_receiver_list", "event:receiver:list", "stream", Lifetime.STREAM, "what job orders went through"),
    KeySpec("event_responder_list", "event:responder:list", "stream", Lifetime.STREAM, "each change of a job response"),
    KeySpec("event_refused_list", "event:refused:list", "stream", Lifetime.STREAM, "messages that could not be taken"),
    KeySpec("active_scopes", "active-scopes", "set", Lifetime.OURS, "scopes that ever held a job"),
    KeySpec("sfc_work", "sfc:work:{scope}", "stream", Lifetime.BACKLOG, "work for the consumer group sfc-engine"),
    KeySpec("sfc_execution", "sfc:execution:{job_id}", "hash", Lifetime.JOB, "the run of a job"),
    KeySpec(
        "sfc_active_jobs", "sfc:active-jobs", "set", Lifetime.OURS, "jobs that run, or of which something is to be sent"
    ),
    KeySpec("sfc_timers", "sfc:timers", "zset", Lifetime.OURS, "jobs by when they want attention"),
    KeySpec("sfc_waits", "sfc:waits:{scope}:{type_id}", "zset", Lifetime.OURS, "jobs by how long they wait"),
    KeySpec("sfc_dead_letters", "sfc:dead-letters", "stream", Lifetime.DEAD_LETTERS, "work that was given up"),
    KeySpec("instances", "instances:{scope}", "set", Lifetime.OURS, "who works, or left work, on a scope"),
    KeySpec("lease_instance", "lease:instance:{consumer}", "string", Lifetime.LEASE, "the process that bears a name"),
    KeySpec("lease_publisher", "lease:publisher:{scope}", "string", Lifetime.OURS, "the instance that publishes"),
    KeySpec("health", "health:{consumer}", "string", Lifetime.REPORT, "how the equipment of an instance is"),
    KeySpec("pubseq", "pubseq:{scope}", "string", Lifetime.OURS, "the number of the last state index"),
    KeySpec("publisher_topics", "publisher:topics:{scope}", "set", Lifetime.OURS, "jobs with retained topics"),
    KeySpec("form", "form", "string", Lifetime.OURS, "the form of all this: see store/fitness.py"),
    KeySpec("publisher_cursors", "publisher:stream-cursors", "hash", Lifetime.OURS, "what was published last"),
)

GROUP = "sfc-engine"
"""The consumer group of the work streams."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Builds the keys below one prefix."""

    prefix: str

    def form(self) -> str:
        """Integer: the form in which everything here is written."""
        return f"{self.prefix}:form"

    def joborder(self, job_order_id: str) -> str:
        """Hash: a job order with its state."""
        return f"{self.prefix}:joborder:{job_order_id}"

    def joborder_list(self, scope: str) -> str:
        """Sorted set: job order ids of a scope by priority."""
        return f"{self.prefix}:joborder:list:{scope}"

    def joborder_open(self, scope: str) -> str:
        """Sorted set: job order ids of a scope that have not ended, by priority."""
        return f"{self.prefix}:joborder:open:{scope}"

    def joborder_startable(self, scope: str) -> str:
        """Sorted set: the jobs of a scope that may start now, in the order in which they do."""
        return f"{self.prefix}:joborder:startable:{scope}"

    def joborder_changes(self, scope: str) -> str:
        """Stream: each change of a job of the scope."""
        return f"{self.prefix}:joborder:changes:{scope}"

    def joborder_changes_global(self) -> str:
        """Stream: each change of any job."""
        return f"{self.prefix}:joborder:changes:_global"

    def jobresponse(self, job_response_id: str) -> str:
        """Hash: a job response."""
        return f"{self.prefix}:jobresponse:{job_response_id}"

    def jobresponse_list(self, scope: str) -> str:
        """Sorted set: job response ids of a scope by start time."""
        return f"{self.prefix}:jobresponse:list:{scope}"

    def workmaster(self, work_master_id: str) -> str:
        """Hash: a work master with its recipe."""
        return f"{self.prefix}:workmaster:{work_master_id}"

    def workmaster_list(self, scope: str) -> str:
        """Set: the work masters a scope may run."""
        return f"{self.prefix}:workmaster:list:{scope}"

    def resource_list(self, kind: str, scope: str) -> str:
        """Set: ids of one kind of resource that a scope may use."""
        return f"{self.prefix}:{kind}:list:{scope}"

    def jobacceptance(self, scope: str) -> str:
        """Integer: the most job orders a scope holds at a time."""
        return f"{self.prefix}:jobacceptance:{scope}"

    def cededupe(self, digest: str) -> str:
        """String: the answer that was given to a CloudEvent."""
        return f"{self.prefix}:cededupe:{digest}"

    def transdedupe(self, digest: str) -> str:
        """String: the answer that a transaction got."""
        return f"{self.prefix}:transdedupe:{digest}"

    def counter(self, name: str) -> str:
        """Integer: how often something happened."""
        return f"{self.prefix}:counter:{name}"

    def event_receiver_list(self) -> str:
        """Stream: each change of a job order, for consumers on this host."""
        return f"{self.prefix}:event:receiver:list"

    def event_responder_list(self) -> str:
        """Stream: each change of a job response, for consumers on this host."""
        return f"{self.prefix}:event:responder:list"

    def event_refused_list(self) -> str:
        """Stream: messages that could not be taken."""
        return f"{self.prefix}:event:refused:list"

    def active_scopes(self) -> str:
        """Set: the scopes that ever held a job."""
        return f"{self.prefix}:active-scopes"

    def sfc_work(self, scope: str) -> str:
        """Stream: work of a scope."""
        return f"{self.prefix}:sfc:work:{scope}"

    def sfc_execution(self, job_id: str) -> str:
        """Hash: the run of a job."""
        return f"{self.prefix}:sfc:execution:{job_id}"

    def sfc_active_jobs(self) -> str:
        """Set: the jobs whose run has not ended."""
        return f"{self.prefix}:sfc:active-jobs"

    def sfc_timers(self) -> str:
        """Sorted set: job ids by the instant of their next deadline, or once they ended of their removal."""
        return f"{self.prefix}:sfc:timers"

    def sfc_waits(self, scope: str, type_id: str) -> str:
        """Sorted set: job ids by the instant since which they wait for an event of that type."""
        return f"{self.prefix}:sfc:waits:{scope}:{type_id}"

    def sfc_dead_letters(self) -> str:
        """Stream: work that met a defect again and again, or could not be read."""
        return f"{self.prefix}:sfc:dead-letters"

    def instances(self, scope: str) -> str:
        """Set: the instances that work on a scope, or ended and left work there."""
        return f"{self.prefix}:instances:{scope}"

    def lease_instance(self, consumer: str) -> str:
        """String: the process that works under the name of an instance."""
        return f"{self.prefix}:lease:instance:{consumer}"

    def lease_publisher(self, scope: str) -> str:
        """String: the instance that publishes the changes of a scope, for as long as its own lease lasts."""
        return f"{self.prefix}:lease:publisher:{scope}"

    def health(self, consumer: str) -> str:
        """String: what an instance last told of its equipment."""
        return f"{self.prefix}:health:{consumer}"

    def pubseq(self, scope: str) -> str:
        """Integer: the number of the state index that was published last."""
        return f"{self.prefix}:pubseq:{scope}"

    def publisher_topics(self, scope: str) -> str:
        """Set: the ids of the jobs whose topics the broker retains."""
        return f"{self.prefix}:publisher:topics:{scope}"

    def publisher_cursors(self) -> str:
        """Hash: per change stream the id of the last entry that was published."""
        return f"{self.prefix}:publisher:stream-cursors"
