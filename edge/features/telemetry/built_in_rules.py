"""The rules that every gateway has about itself and its jobs; a rule of the same id replaces one of them."""

import functools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from edge.features.telemetry.job_samples import JOB_ABORTED
from edge.features.telemetry.model.rule import RULE_KINDS, Rule
from edge.store.bounds import ALARM_PART
from edge.store.server_check import NEARLY_FULL

STEP_OVERDUE: Final = "step.overdue"

BUILT_IN: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "gateway.equipment_offline",
        "kind": "limit",
        "tag": "equipment.*.connected",
        "limits": {"low": {"at": 0.5, "severity": 600}},
        "on_delay_seconds": 5,
        "message": {"en": "{name} is offline", "de": "{name} ist nicht erreichbar"},
    },
    {
        "id": "gateway.tool_may_be_active",
        "kind": "limit",
        "tag": "equipment.*.maybe_active",
        "limits": {"high": {"at": 0, "severity": 800}},
        "message": {
            "en": "{name} has not confirmed a stop, the tool may still be active",
            "de": "{name} hat einen Stopp nicht bestätigt, das Werkzeug ist vielleicht noch aktiv",
        },
    },
    {
        "id": "gateway.equipment_fault",
        "kind": "limit",
        "tag": "equipment.*.fault",
        "limits": {"high": {"at": 0, "severity": 600}},
        "on_delay_seconds": 5,
        "message": {
            "en": "{name} reports a fault: edge equipment show",
            "de": "{name} meldet einen Fehler: edge equipment show",
        },
    },
    {
        "id": "gateway.outcome_unknown",
        "kind": "limit",
        "tag": "equipment.*.unknown_outcomes",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": {
            "en": "{name} has commands of unknown outcome: {value}; decide: edge jobs why, edge jobs resolve",
            "de": "{name} hat Befehle mit unbekanntem Ausgang: {value}; entscheiden: edge jobs why, edge jobs resolve",
        },
    },
    {
        "id": "gateway.results_skipped",
        "kind": "limit",
        "tag": "equipment.*.skipped_results",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": {
            "en": "{name}: {value} results were skipped because they are too large: edge refused",
            "de": "{name}: {value} Ergebnisse wurden übersprungen, weil sie zu groß sind: edge refused",
        },
    },
    {
        "id": "gateway.answers_flooded",
        "kind": "limit",
        "tag": "equipment.*.answers_flooded",
        "limits": {"high": {"at": 0, "severity": 500}},
        "off_delay_seconds": 10,
        "message": {
            "en": "{name}: its answers topic is flooded, its broker may drop answers: edge doctor",
            "de": "{name}: sein Topic für Antworten wird überflutet, sein Broker verliert vielleicht Antworten",
        },
    },
    {
        "id": "gateway.traces_lost",
        "kind": "limit",
        "tag": "equipment.*.lost_traces",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": {"en": "{name}: {value} traces or files could not be stored: edge doctor, edge equipment show"},
    },
    {
        "id": "gateway.job_awaits_person",
        "kind": "limit",
        "tag": "gateway.jobs_await_person",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": {
            "en": "{value} jobs wait for a person because an action failed: edge jobs why",
            "de": "{value} Aufträge warten auf eine Person, weil eine Aktion fehlschlug: edge jobs why",
        },
    },
    {
        "id": "gateway.job_aborted",
        "kind": "occurs",
        "pattern": JOB_ABORTED,
        "severity": 500,
        "message": {"en": "job {job} was aborted", "de": "Auftrag {job} wurde abgebrochen"},
    },
    {
        "id": "gateway.store_repaired",
        "kind": "limit",
        "tag": "gateway.store_repairs",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": {
            "en": "the file of the store was repaired after a power cut: edge doctor names the damaged one",
            "de": "die Datei des Speichers wurde nach einem Stromausfall repariert: edge doctor nennt die beschädigte",
        },
    },
    {
        "id": "gateway.store_nearly_full",
        "kind": "limit",
        "tag": "gateway.store_fullness",
        "limits": {"high": {"at": NEARLY_FULL, "severity": 800}},
        "hysteresis": 0.05,
        "message": {"en": "the store is {value} full", "de": "der Speicher ist zu {value} voll"},
    },
    {
        "id": "gateway.store_no_majority",
        "kind": "limit",
        "tag": "gateway.primary_unconfirmed",
        "limits": {"high": {"at": 0, "severity": 800}},
        "message": {
            "en": "no majority of the sentinels confirmed the primary, work waited: edge store status",
            "de": "keine Mehrheit der Sentinels bestätigte den Primary, die Arbeit wartete: edge store status",
        },
    },
    {
        "id": "gateway.store_sentinel_away",
        "kind": "limit",
        "tag": "gateway.sentinels_away",
        "limits": {"high": {"at": 0, "severity": 600}},
        "on_delay_seconds": 10,
        "message": {
            "en": "{value} sentinels of the store do not answer: edge store status",
            "de": "{value} Sentinels des Speichers antworten nicht: edge store status",
        },
    },
    {
        "id": "gateway.store_replica_away",
        "kind": "limit",
        "tag": "gateway.store_replicas_away",
        "limits": {"high": {"at": 0, "severity": 700}},
        "on_delay_seconds": 10,
        "message": {
            "en": "a replica of the store is away, the loss of the primary may stop the line: edge store status",
            "de": "ein Replikat des Speichers fehlt, ohne Primary steht vielleicht die Linie: edge store status",
        },
    },
    {
        "id": "gateway.store_replica_lags",
        "kind": "limit",
        "tag": "gateway.store_replicas_lagging",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": {
            "en": "{value} replicas of the store lag behind, a failover would lose jobs: edge store status",
            "de": "{value} Replikate des Speichers sind im Rückstand, ein Wechsel verlöre Aufträge: edge store status",
        },
    },
    {
        "id": "gateway.store_clock_differs",
        "kind": "limit",
        "tag": "gateway.clocks_differing",
        "limits": {"high": {"at": 0, "severity": 500}},
        "on_delay_seconds": 10,
        "message": {
            "en": "the clocks of {value} servers of the store differ from that of the gateway: edge store status",
            "de": "die Uhren von {value} Servern des Speichers weichen von der des Gateways ab: edge store status",
        },
    },
    {
        "id": "gateway.store_without_file",
        "kind": "limit",
        "tag": "gateway.store_without_file",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": {
            "en": "{value} servers of the store keep no append-only file: edge store status",
            "de": "{value} Server des Speichers führen keine Append-only-Datei: edge store status",
        },
    },
    {
        "id": "gateway.marks_pile_up",
        "kind": "limit",
        "tag": "gateway.marks_fullness",
        "limits": {"high": {"at": ALARM_PART, "severity": 600}},
        "hysteresis": 0.05,
        "message": {
            "en": "{value} of the marks of messages that are allowed: at 1 new orders are refused",
            "de": "{value} der erlaubten Marken von Nachrichten: bei 1 werden neue Aufträge abgelehnt",
        },
    },
    {
        "id": "gateway.sender_marks_pile_up",
        "kind": "limit",
        "tag": "gateway.marks_of.*",
        "limits": {"high": {"at": ALARM_PART, "severity": 600}},
        "hysteresis": 0.05,
        "message": {
            "en": "{name} has used {value} of its marks, at 1 it is refused: edge marks list",
            "de": "{name} belegt {value} seiner Marken, bei 1 wird er abgelehnt: edge marks list",
        },
    },
    {
        "id": "gateway.task_fails",
        "kind": "limit",
        "tag": "gateway.failing_tasks",
        "limits": {"high": {"at": 0, "severity": 700}},
        "message": {
            "en": "{value} background tasks fail and are retried: the status line names them",
            "de": "{value} Hintergrundaufgaben schlagen fehl und werden wiederholt: die Statuszeile nennt sie",
        },
    },
    {
        "id": "gateway.clock_unsynchronised",
        "kind": "limit",
        "tag": "gateway.clock_synchronised",
        "limits": {"low": {"at": 0.5, "severity": 300}},
        "on_delay_seconds": 60,
        "message": {
            "en": "the clock of the gateway is not synchronised",
            "de": "die Uhr des Gateways ist nicht synchronisiert",
        },
    },
    {
        "id": "gateway.results_uncollected",
        "kind": "limit",
        "tag": "gateway.results_uncollected",
        "limits": {"high": {"at": 0, "severity": 500}},
        "message": {
            "en": "the MES has not confirmed {value} results of ended jobs in time",
            "de": "das MES hat {value} Ergebnisse beendeter Aufträge nicht rechtzeitig bestätigt",
        },
    },
    {
        "id": "gateway.certificate_expiring",
        "kind": "limit",
        "tag": "gateway.certificates_expiring",
        "limits": {"high": {"at": 0, "severity": 600}},
        "message": {
            "en": "{value} certificates expire soon, cannot be used or do not name an address: edge doctor",
            "de": "{value} Zertifikate laufen bald ab, sind unbrauchbar oder nennen eine Adresse nicht: edge doctor",
        },
    },
    {
        "id": "gateway.step_overdue",
        "kind": "occurs",
        "pattern": STEP_OVERDUE,
        "severity": 300,
        "message": {
            "en": "job {job}: step {data.step} takes {data.seconds} s, usually {data.usual} s",
            "de": "Auftrag {job}: Schritt {data.step} dauert {data.seconds} s, sonst {data.usual} s",
        },
    },
)


def with_built_in(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return rules with the built-in ones; a rule of the same id replaces the built-in one."""
    ids = {rule.id for rule in rules}
    return (*rules, *(rule for rule in _built_in_rules() if rule.id not in ids))


@functools.cache
def _built_in_rules() -> tuple[Rule, ...]:
    # Without the check of their form, which finds the faults of a user: a test checks them.
    return tuple(msgspec.convert(entry, RULE_KINDS[entry["kind"]]) for entry in BUILT_IN)
