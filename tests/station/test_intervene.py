"""Tests of interventions in a station: one effect per request, second person, response for the MES, refusals."""

from typing import Any

import pytest

from edge.config import UsersSettings
from edge.foundation.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import Cause
from edge.model.recipe import Intervention
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome
from edge.sfc.signal import Intervene, Resolution, Resolve
from edge.station.decision import RESOLVE, second_person
from edge.station.equipment import OutcomeUnknown
from edge.station.intervene import InterventionRequest, intervene
from edge.station.job_call import CallAnswer
from edge.station.runs import Runs
from edge.store import responses
from edge.store.client import Store
from tests.station.plant import DEDUPE_MS, KEEP_ENDED_MS, LINEAR, SCOPE, Clock, FakeEquipment, Plant, order

SKIP_BY_TWO = UsersSettings(second_person=("skip",))


def request(
    kind: Intervention, event_id: str = "e1", by: str = "anna", *, has_login: bool = True, **members: Any
) -> InterventionRequest:
    signal = Intervene(kind, **({"action": "a", "reason": "seen", "by": by} | members))
    return InterventionRequest(
        scope=SCOPE, job_id="J1", signal=signal, source="cli", event_id=event_id, has_login=has_login
    )


async def failed(plant: Plant, tool: FakeEquipment) -> None:
    """Start J1 in a recipe that allows all interventions; its first action fails."""
    await plant.teach("attended", LINEAR | {"interventions": ["retry", "skip", "force", "complete"]})
    await plant.order(Cause.STORE_AND_START, order("J1", "attended"))
    await plant.drive()
    await plant.answer(tool.commands[0], error="torque low")


async def parameters(plant: Plant) -> dict[str, Any]:
    response = await responses.load(plant.store, await plant.job("J1"))
    assert response
    return {parameter.id: parameter for parameter in response.job_response_data or ()}


async def test_held_failure_is_in_the_response_at_once(plant: Plant, tool: FakeEquipment) -> None:
    await failed(plant, tool)
    (held,) = (await parameters(plant))["AwaitsIntervention"].subparameters
    assert (held.id, held.value) == ("a", "failed: torque low")


async def test_retry_sent_twice_starts_one_new_attempt(plant: Plant, tool: FakeEquipment) -> None:
    await failed(plant, tool)
    for _ in range(2):
        answer = await intervene(plant.runs, request(Intervention.RETRY), DEDUPE_MS)
        assert answer.status is ReturnStatus.NO_ERROR
    await plant.drive()
    assert [command.attempt for command in tool.commands] == [1, 2]
    found = await parameters(plant)
    assert "AwaitsIntervention" not in found
    (note,) = found["Interventions"].subparameters
    facts = {subparameter.id: subparameter.value for subparameter in note.subparameters}
    assert {name: facts[name] for name in ("kind", "subject", "by", "reason")} == {
        "kind": "retry",
        "subject": "a of one",
        "by": "anna",
        "reason": "seen",
    }


async def test_skip_with_a_result_starts_the_next_command(plant: Plant, tool: FakeEquipment) -> None:
    await failed(plant, tool)
    await intervene(plant.runs, request(Intervention.SKIP, data={"torque": 85}), DEDUPE_MS)
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_second_person_is_required_if_configured(
    plant: Plant, tool: FakeEquipment, store: Store, clock: Clock
) -> None:
    await failed(plant, tool)
    runs = Runs(store, clock, KEEP_ENDED_MS, second_person=second_person(SKIP_BY_TWO))
    for _ in range(2):
        answer = await intervene(runs, request(Intervention.SKIP), DEDUPE_MS)
        assert answer.status is ReturnStatus.AWAITS_SECOND_PERSON
    claimed = await intervene(runs, request(Intervention.SKIP, "e2", "bert", has_login=False), DEDUPE_MS)
    assert claimed.status is ReturnStatus.INVALID_JOB_ORDER_STATUS
    assert "login at the gateway" in str(claimed.reason)
    with pytest.raises(Refused, match="has no name"):
        await intervene(runs, request(Intervention.SKIP, "e3", "anonymous"), DEDUPE_MS)
    assert (await intervene(runs, request(Intervention.SKIP, "e4", "bert"), DEDUPE_MS)).status is ReturnStatus.NO_ERROR
    loaded = await plant.runs.load("J1")
    assert loaded
    assert loaded.stored.run.active == {"two"}


@pytest.mark.parametrize(
    ("users", "needed"),
    [
        (UsersSettings(), {}),
        (SKIP_BY_TWO, {"skip": 600_000, RESOLVE: 600_000}),
        (UsersSettings(second_person=("force",)), {"force": 600_000}),
        (UsersSettings(second_person=("skip",), second_person_resolve="off"), {"skip": 600_000}),
        (UsersSettings(second_person_resolve="on", second_person_within=10), {RESOLVE: 10_000}),
    ],
)
def test_resolve_needs_a_second_person_where_skip_does(users: UsersSettings, needed: dict[str, int]) -> None:
    assert second_person(users) == needed


async def test_outcome_is_resolved_when_a_second_person_asks_for_the_same(
    plant: Plant, tool: FakeEquipment, store: Store, clock: Clock
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "the result is lost"))
    runs = Runs(store, clock, KEEP_ENDED_MS, second_person=second_person(SKIP_BY_TWO))

    async def asked(event_id: str, by: str, data: object, *, has_login: bool = True) -> CallAnswer:
        signal = Resolve("a", Resolution.DONE, data, "seen at the part", by)
        return await intervene(
            runs,
            InterventionRequest(
                scope=SCOPE, job_id="J1", signal=signal, source="page", event_id=event_id, has_login=has_login
            ),
            DEDUPE_MS,
        )

    assert (await asked("e1", "anna", {"torque": 85})).status is ReturnStatus.AWAITS_SECOND_PERSON
    assert (await asked("e2", "anna", {"torque": 85})).status is ReturnStatus.AWAITS_SECOND_PERSON
    assert "another result" in str((await asked("e3", "bert", {"torque": 90})).reason)
    assert "with a login" in str((await asked("e4", "bert", {"torque": 85}, has_login=False)).reason)
    with pytest.raises(Refused, match="resolve done needs two people"):
        await asked("e5", "", {"torque": 85})
    loaded = await runs.load("J1")
    assert loaded
    assert loaded.stored.run.associations[key("a@one")].state is ActionState.UNKNOWN
    assert (await asked("e6", "bert", {"torque": 85})).status is ReturnStatus.NO_ERROR
    loaded = await runs.load("J1")
    assert loaded
    association = loaded.stored.run.associations[key("a@one")]
    assert (association.state, association.result) == (ActionState.COMPLETED, {"torque": 85})
    assert association.resolved_by == "anna and bert: seen at the part"
    (note,) = loaded.stored.run.interventions.values()
    assert (note.kind, note.by, note.second, note.until) == ("resolve done", "anna", "bert", None)


async def test_interventions_are_refused_without_permission_reason_or_job(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    refused = await intervene(plant.runs, request(Intervention.SKIP), DEDUPE_MS)
    assert refused.status is ReturnStatus.INVALID_JOB_ORDER_STATUS
    assert "does not allow skip" in str(refused.reason)
    with pytest.raises(Refused):
        await intervene(plant.runs, request(Intervention.SKIP, reason=" "), DEDUPE_MS)
    with pytest.raises(Refused, match="names are longer"):
        await intervene(plant.runs, request(Intervention.SKIP, step="x" * 100_000), DEDUPE_MS)
    await plant.answer(tool.commands[0], error="torque low")
    loaded = await plant.runs.load("J1")
    assert loaded
    assert loaded.stored.run.outcome is Outcome.FAILED
    ended = await intervene(plant.runs, request(Intervention.SKIP, "e2"), DEDUPE_MS)
    assert ended.status is ReturnStatus.INVALID_JOB_ORDER_STATUS
