"""What the archive knows of a job: its line in a list, the terms by which it is found, the time of each step."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from edge.features.archive.answers import PromptAnswer, prompt_answers
from edge.features.archive.choices import DecidingChoice, deciding_choices, skipped_actions
from edge.foundation.text import Text, as_text
from edge.model.isa95 import JobOrder, JobResponse
from edge.model.json_value import plain_value
from edge.model.result_violations import quantity_name
from edge.ports.result_trace import MOST_LEVELS
from edge.sfc.run import ActionState, Association, Outcome, Run
from edge.sfc.verdict import OK
from edge.station.public_job import NO_EQUIPMENT, work_masters
from edge.station.public_result import attempts_of
from edge.station.stored_job import StoredJob, of_documents
from edge.store.archive_backlog import JobDocuments

ORDER: Final = "order"
SCOPE: Final = "scope"
WORK_MASTER: Final = "work_master"
EQUIPMENT: Final = "equipment"
PERSON: Final = "person"
CODE: Final = "code"
MATERIAL: Final = "material"
ASSET: Final = "asset"
OUTCOME: Final = "outcome"
VERDICT: Final = "verdict"
VIOLATION: Final = "violation"
PARAMETER: Final = "parameter."
"""The beginning of the name of a term that is a parameter of the order; its id follows."""
NOT_IDENTIFIERS: Final = (SCOPE, OUTCOME, VERDICT)
"""The names whose values a search for an identifier leaves out."""

_MOST_TERMS: Final = 100
_LONGEST_TERM: Final = 200
_LONGEST_REMARK: Final = 300
_MOST_REASONS: Final = 20
_MOST_ASSETS: Final = 10
_FAILED: Final = frozenset({ActionState.FAILED, ActionState.TIMED_OUT, ActionState.UNKNOWN})
_LIMITS: Final = {"high": Text.of("high"), "low": Text.of("low")}


class Term(Struct, frozen=True, array_like=True, order=True):
    """What a job is found by: a value, without regard to upper and lower case, and what it is of the job."""

    value: str
    name: str


class Facts(Struct, frozen=True, array_like=True):
    """What lists and charts show of a job, in addition to its line."""

    parameters: Mapping[str, str] = {}
    """The parameters of its order that are plain values."""
    steps: Mapping[str, int] = {}
    """How long each step was active last, in milliseconds, in the order of the chart."""
    reasons: tuple[str, ...] = ()
    """Why it is not OK: the actions that failed, and the limits that their results violate."""
    error: Text | None = None
    """Why it ended, and who ended it, where no action was not OK."""
    texts: tuple[Text, ...] = ()
    """The reasons that are not choices as texts, for readers of each language; earlier versions did not store them."""
    choices: tuple[DecidingChoice, ...] = ()
    """What people decided with which it is not OK: the first of the reasons."""
    assets: tuple[str, ...] = ()
    """The physical assets of the job, such as the VIN of a vehicle, those of the order first."""
    answers: tuple[PromptAnswer, ...] = ()
    """What people answered, in the order of the answers."""


class JobRecord(Struct, frozen=True, kw_only=True):
    """A job in the archive. Instants are milliseconds since the epoch; `id` is that of its response.

    `outcome` is `completed`, `failed`, `stopped` or `aborted`; `verdict` is that of the recipe, empty without one.
    """

    id: str
    revision: int
    job_id: str
    scope: str
    work_master: str
    started_at: int | None
    ended_at: int
    outcome: str
    verdict: str
    remark: str
    facts: Facts
    terms: tuple[Term, ...]
    recipe: str
    """The recipe that it ran with, as its run has it; empty without one."""
    documents: JobDocuments
    """Its documents, of which the run has no recipe."""


def record_of(documents: JobDocuments, equipment: Mapping[str, str] = NO_EQUIPMENT) -> JobRecord:
    """Return what the archive knows of a job. Raises Refused when the documents cannot be decoded.

    `equipment` has the name of the equipment for the type of each command.
    """
    stored = of_documents(documents)
    job, run = stored.job, stored.run
    texts = tuple(dict.fromkeys(_reasons(stored)))[:_MOST_REASONS]
    choices = _choices(stored, has_reasons=bool(texts))[:_MOST_REASONS]
    reasons = (*(choice.text() for choice in choices), *map(str, texts))
    without_run = Outcome.FAILED if job.has_failed else Outcome.ABORTED
    outcome = (run.outcome if run is not None and run.ended else without_run).value
    error = as_text(job.error) if job.error and not reasons else None
    recipe = documents.run.get("recipe", "")
    return JobRecord(
        id=job.correlation_id,
        revision=job.revision,
        job_id=job.job_id,
        scope=job.scope,
        work_master=work_masters(job.order),
        started_at=job.started_at,
        ended_at=job.ended_at or job.stored_at,
        outcome=outcome,
        verdict=job.verdict,
        remark=(choices[0].remark() if choices else reasons[0] if reasons else str(error or ""))[:_LONGEST_REMARK],
        facts=Facts(
            _parameters(job.order),
            _step_times(stored),
            reasons,
            error,
            texts,
            choices,
            tuple(dict.fromkeys(_assets(job.order, stored.response)))[:_MOST_ASSETS],
            prompt_answers(stored)[:_MOST_REASONS],
        ),
        terms=_terms(stored, outcome, reasons, equipment),
        recipe=recipe,
        documents=JobDocuments(
            documents.job,
            documents.response,
            {name: text for name, text in documents.run.items() if name != "recipe"},
            documents.decisions,
        ),
    )


def with_recipe(documents: JobDocuments, recipe: str) -> JobDocuments:
    """Return archived documents as they were stored."""
    if not documents.run:
        return documents
    return JobDocuments(documents.job, documents.response, documents.run | {"recipe": recipe}, documents.decisions)


def term_of(name: str, value: object) -> Term:
    """Return the term of a value: spaces around it and its case have no meaning."""
    return Term(str(value).strip().casefold()[:_LONGEST_TERM], name)


def _parameters(order: JobOrder) -> dict[str, str]:
    plain = ((parameter.id, plain_value(parameter.value)) for parameter in order.job_order_parameters or ())
    return {name: str(value) for name, value in plain if isinstance(value, str | int | float) and str(value)}


def _step_times(stored: StoredJob) -> dict[str, int]:
    run = stored.run
    if run is None or stored.net is None:
        return {}
    steps = ((name, run.steps.get(name)) for name in stored.net.steps)
    # The last step of a chart stays active when the run ends.
    return {name: state.t(run.ended_at or 0) for name, state in steps if state is not None}


def _reasons(stored: StoredJob) -> Iterator[Text]:
    """Yield why a job is not OK: of the latest attempt of each action that it failed, and which limits it violated."""
    for association in _in_order(stored):
        violations = list(_violations(association.result, MOST_LEVELS))
        if association.state in _FAILED and not violations:
            violations = [association.state.text]
        yield from (Text.of("{action}: {fault}", action=association.action, fault=fault) for fault in violations)


def _choices(stored: StoredJob, *, has_reasons: bool) -> tuple[DecidingChoice, ...]:
    """Return what people decided with which a job is not OK; a choice counts where nothing else is wrong."""
    run, net = stored.run, stored.net
    if run is None or net is None or stored.job.verdict in ("", OK):
        return ()
    skipped = skipped_actions(run)
    return skipped if skipped or has_reasons else deciding_choices(net, run)


def _in_order(stored: StoredJob) -> list[Association]:
    """Return the latest attempts in the order of the recipe."""
    run, net = stored.run, stored.net
    if run is None or net is None:
        return []
    return [run.associations[key] for key in sorted(run.associations, key=lambda key: net.actions[key.latest].index)]


def _sent_types(stored: StoredJob) -> Iterator[str]:
    """Yield the types of the commands that were sent, whatever became of them."""
    if stored.run is not None and stored.net is not None:
        for key, association in stored.run.associations.items():
            if association.sent_at is not None:
                yield stored.net.actions[key.latest].type_id


def _violations(value: Any, levels: int) -> Iterator[Text]:
    """Yield the limits that a result violates, as `torque high`; those of its parts are among them."""
    if not levels or not isinstance(value, Mapping | list):
        return
    for name, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        if name != "violations" or not isinstance(inner, Mapping):
            yield from _violations(inner, levels - 1)
            continue
        for measured, violation in inner.items():
            which = str(violation.get("violation", "") if isinstance(violation, Mapping) else "").lower()
            limit = _LIMITS.get(which, which)
            yield (
                Text.of("{measured} {limit}", measured=quantity_name(measured), limit=limit)
                if which
                else as_text(quantity_name(measured))
            )


def _terms(stored: StoredJob, outcome: str, reasons: Sequence[str], equipment: Mapping[str, str]) -> tuple[Term, ...]:
    job = stored.job
    pairs: dict[Term, None] = {}
    for name, value in (
        (ORDER, job.job_id),
        (SCOPE, job.scope),
        *((WORK_MASTER, work_master.id) for work_master in job.order.work_master_id or ()),
        (OUTCOME, outcome),
        (VERDICT, job.verdict),
        *((PARAMETER + parameter, value) for parameter, value in _parameters(job.order).items()),
        *((VIOLATION, reason) for reason in reasons),
        *((VIOLATION, part) for reason in reasons for part in reason.split(": ", 1)),
        *((EQUIPMENT, equipment.get(type_id)) for type_id in _sent_types(stored)),
        *_resources(job.order, stored.response),
        *_persons(stored.run),
        *_codes(stored),
    ):
        if value is not None and str(value).strip():
            pairs[term_of(name, value)] = None
    return tuple(pairs)[:_MOST_TERMS]


def _resources(order: JobOrder, response: JobResponse | None) -> Iterator[tuple[str, str | None]]:
    """Yield what the order asks for, and what was used."""
    yield from ((EQUIPMENT, equipment.id) for equipment in order.equipment_requirements or ())
    yield from ((PERSON, person.id) for person in order.personnel_requirements or ())
    yield from ((ASSET, asset) for asset in _assets(order, response))
    materials = list(order.material_requirements or ())
    if response is not None:
        yield from ((EQUIPMENT, equipment.id) for equipment in response.equipment_actuals or ())
        yield from ((PERSON, person.id) for person in response.personnel_actuals or ())
        materials += response.material_actuals or ()
    for material in materials:
        yield from ((MATERIAL, text) for text in (material.material_lot_id, material.material_sublot_id))


def _assets(order: JobOrder, response: JobResponse | None) -> Iterator[str]:
    yield from (asset.id for asset in order.physical_asset_requirements or ())
    if response is not None:
        yield from (asset.id for asset in response.physical_asset_actuals or ())


def _persons(run: Run | None) -> Iterator[tuple[str, str]]:
    """Yield who intervened, confirmed, or decided about an unknown outcome."""
    if run is None:
        return
    for note in run.interventions.values():
        yield PERSON, note.by
        yield PERSON, note.second
    yield from ((PERSON, association.resolved_by) for association in run.associations.values())
    yield from ((PERSON, past.resolved_by) for past in run.past.values())


def _codes(stored: StoredJob) -> Iterator[tuple[str, str]]:
    for attempt in attempts_of(stored):
        for code in _members(attempt.result, CODE, MOST_LEVELS):
            yield CODE, code


def _members(value: Any, name: str, levels: int) -> Iterator[str]:
    """Yield the texts that a result has under a name, at any level."""
    if not levels or not isinstance(value, Mapping | list):
        return
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        if key == name and isinstance(inner, str):
            yield inner
        else:
            yield from _members(inner, name, levels - 1)
