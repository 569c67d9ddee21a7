"""The rules that every gateway has about itself and its jobs; a rule of the same id replaces one of them."""

import functools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from edge.features.telemetry.job_samples import JOB_ABORTED
from edge.features.telemetry.model.rule import RULE_KINDS, Rule
from edge.foundation.text import Text, in_every_language
from edge.store.bounds import ALARM_PART
from edge.store.server_check import NEARLY_FULL

STEP_OVERDUE: Final = "step.overdue"
JOB_ABORTED_RULE: Final = "gateway.job_aborted"
"""Its alarms are about jobs that have ended: they expire with their jobs."""

_BUILT_IN: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "gateway.equipment_offline",
        "kind": "limit",
        "tag": "equipment.*.connected",
        "limits": {"low": {"at": 0.5, "severity": 600}},
        "on_delay_seconds": 5,
        "message": Text("{name} is offline"),
    },
    {
        "id": "gateway.tool_may_be_active",
        "kind": "limit",
        "tag": "equipment.*.maybe_active",
        "limits": {"high": {"at": 0, "severity": 800}},
        "message": Text("{name} has not confirmed a stop, the tool may still be active"),
    },
    {
        "id": "gateway.equipment_fault",
        "kind": "limit",
        "tag": "equipment.*.fault",
        "limits": {"high": {"at": 0, "severity": 600}},
        "on_delay_seconds": 5,
        "message": Text("{name} reports a fault: edge equipment show"),
    },
    {
        "id": "gateway.outcome_unknown",
        "kind": "limit",
        "tag": "equipment.*.unknown_outcomes",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": Text("{name} has commands of unknown outcome: {value}; decide: edge jobs why, edge jobs resolve"),
    },
    {
        "id": "gateway.results_skipped",
        "kind": "limit",
        "tag": "equipment.*.skipped_results",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": Text(
            "{name}: results that were skipped because they are too large: {value}; edge refused shows them"
        ),
    },
    {
        "id": "gateway.answers_flooded",
        "kind": "limit",
        "tag": "equipment.*.answers_flooded",
        "limits": {"high": {"at": 0, "severity": 500}},
        "off_delay_seconds": 10,
        "message": Text("{name}: its answers topic is flooded, its broker may drop answers: edge doctor"),
    },
    {
        "id": "gateway.traces_lost",
        "kind": "limit",
        "tag": "equipment.*.lost_traces",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": Text(
            "{name}: traces or files that could not be stored: {value}; see edge doctor, edge equipment show"
        ),
    },
    {
        "id": "gateway.archive_fails",
        "kind": "limit",
        "tag": "gateway.archive_failing",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": Text("results cannot be archived and wait in the store: edge doctor"),
    },
    {
        "id": "gateway.jobs_lost_to_archive",
        "kind": "limit",
        "tag": "gateway.jobs_lost_to_archive",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": Text("jobs that left the store before they could be archived: {value}; edge doctor says why"),
    },
    {
        "id": "gateway.job_awaits_person",
        "kind": "limit",
        "tag": "gateway.jobs_await_person",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": Text("jobs wait for a person because an action failed: {value}; edge jobs why says which"),
    },
    {
        "id": JOB_ABORTED_RULE,
        "kind": "occurs",
        "pattern": JOB_ABORTED,
        "severity": 500,
        "message": Text("job {job} did not complete: {data.why}"),
    },
    {
        "id": "gateway.store_repaired",
        "kind": "limit",
        "tag": "gateway.store_repairs",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": Text("the file of the store was repaired after a power cut: edge doctor names the damaged one"),
    },
    {
        "id": "gateway.store_nearly_full",
        "kind": "limit",
        "tag": "gateway.store_fullness",
        "limits": {"high": {"at": NEARLY_FULL, "severity": 800}},
        "hysteresis": 0.05,
        "message": Text("the store is {value} full"),
    },
    {
        "id": "gateway.store_no_majority",
        "kind": "limit",
        "tag": "gateway.primary_unconfirmed",
        "limits": {"high": {"at": 0, "severity": 800}},
        "message": Text("no majority of the sentinels confirmed the primary, work waited: edge store status"),
    },
    {
        "id": "gateway.store_sentinel_away",
        "kind": "limit",
        "tag": "gateway.sentinels_away",
        "limits": {"high": {"at": 0, "severity": 600}},
        "on_delay_seconds": 10,
        "message": Text("a sentinel of the store does not answer: edge store status"),
    },
    {
        "id": "gateway.store_replica_away",
        "kind": "limit",
        "tag": "gateway.store_replicas_away",
        "limits": {"high": {"at": 0, "severity": 700}},
        "on_delay_seconds": 10,
        "message": Text("a replica of the store is away, the loss of the primary may stop the line: edge store status"),
    },
    {
        "id": "gateway.store_replica_lags",
        "kind": "limit",
        "tag": "gateway.store_replicas_lagging",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": Text("a replica of the store lags behind, a failover would lose jobs: edge store status"),
    },
    {
        "id": "gateway.store_clock_differs",
        "kind": "limit",
        "tag": "gateway.clocks_differing",
        "limits": {"high": {"at": 0, "severity": 500}},
        "on_delay_seconds": 10,
        "message": Text("the clock of a server of the store differs from that of the gateway: edge store status"),
    },
    {
        "id": "gateway.store_without_file",
        "kind": "limit",
        "tag": "gateway.store_without_file",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": Text("a server of the store keeps no append-only file: edge store status"),
    },
    {
        "id": "gateway.marks_pile_up",
        "kind": "limit",
        "tag": "gateway.marks_fullness",
        "limits": {"high": {"at": ALARM_PART, "severity": 600}},
        "hysteresis": 0.05,
        "message": Text("{value} of the marks of messages that are allowed: at 1 new orders are refused"),
    },
    {
        "id": "gateway.sender_marks_pile_up",
        "kind": "limit",
        "tag": "gateway.marks_of.*",
        "limits": {"high": {"at": ALARM_PART, "severity": 600}},
        "hysteresis": 0.05,
        "message": Text("{name} has used {value} of its marks, at 1 it is refused: edge marks list"),
    },
    {
        "id": "gateway.task_fails",
        "kind": "limit",
        "tag": "gateway.failing_tasks",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": Text("background tasks that fail and are retried: {value}; the status line names them"),
    },
    {
        "id": "gateway.clock_unsynchronised",
        "kind": "limit",
        "tag": "gateway.clock_synchronised",
        "limits": {"low": {"at": 0.5, "severity": 300}},
        "on_delay_seconds": 60,
        "message": Text("the clock of the gateway is not synchronised"),
    },
    {
        "id": "gateway.results_uncollected",
        "kind": "limit",
        "tag": "gateway.results_uncollected",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": Text("results of ended jobs that the MES has not confirmed in time: {value}"),
    },
    {
        "id": "gateway.certificate_expiring",
        "kind": "limit",
        "tag": "gateway.certificates_expiring",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": Text(
            "certificates that expire soon, cannot be used or do not name an address: {value}; edge doctor names them"
        ),
    },
    {
        "id": "gateway.recipe_faulty",
        "kind": "limit",
        "tag": "gateway.faulty_recipes",
        "limits": {"high": {"at": 0, "severity": 300}},
        "message": Text("recipes with a step at which a job can stand still: {value}; edge check recipe shows it"),
    },
    {
        "id": "gateway.step_overdue",
        "kind": "occurs",
        "pattern": STEP_OVERDUE,
        "severity": 300,
        "message": Text("job {job}: step {data.step} takes {data.seconds} s, usually {data.usual} s"),
    },
)


def built_in_documents() -> tuple[dict[str, Any], ...]:
    """Return the rules as documents, their messages in each language that has a catalogue."""
    return tuple({**entry, "message": in_every_language(entry["message"])} for entry in _BUILT_IN)


def with_built_in(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return rules with the built-in ones; a rule of the same id replaces the built-in one."""
    ids = {rule.id for rule in rules}
    return (*rules, *(rule for rule in _built_in_rules() if rule.id not in ids))


@functools.cache
def _built_in_rules() -> tuple[Rule, ...]:
    # Without the check of their form, which finds the faults of a user: a test checks them.
    return tuple(msgspec.convert(entry, RULE_KINDS[entry["kind"]]) for entry in built_in_documents())
