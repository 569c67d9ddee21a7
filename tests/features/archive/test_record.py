"""A job is found by what identifies it, by who worked on it, and by why it is not OK."""

from typing import Any

import msgspec
import pytest

from edge.features.archive.record import JobRecord, record_of, with_recipe
from edge.model.isa95 import Equipment, JobOrder, Material, Parameter, Personnel, PhysicalAsset
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer
from edge.store.archive_backlog import JobDocuments, load_documents
from tests.station.plant import FakeEquipment, Plant, order


async def documents_of(plant: Plant, job: JobOrder) -> JobDocuments:
    """Run a job and return its documents."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, job)
        await plant.until_state(job.job_order_id, JobState.ENDED)
    stored = await plant.job(job.job_order_id)
    documents = await load_documents(plant.store, stored.job_id, stored.correlation_id)
    assert documents
    return documents


async def recorded(plant: Plant, job: JobOrder) -> JobRecord:
    """Run a job and return its record."""
    return record_of(await documents_of(plant, job))


def terms_of(record: JobRecord, name: str) -> list[str]:
    """Return the terms of a name."""
    return sorted(term.value for term in record.terms if term.name == name)


def answering(tool: FakeEquipment, result: Any) -> None:
    """Make the tool answer each start with a result."""
    tool.replies = lambda command: _answer(command, result)


def _answer(command: Command, result: Any) -> EquipmentAnswer | None:
    return EquipmentAnswer(command.command_id, result) if command.phase is Phase.START else None


async def test_resources_of_the_order_and_of_results_are_terms(plant: Plant, tool: FakeEquipment) -> None:
    answering(tool, {"equipment_actuals": "wrench-9", "personnel_actuals": ["bert"], "material_actuals": "LOT-8"})
    documents = await documents_of(plant, order("J1"))
    given = order(
        "J1",
        job_order_parameters=(Parameter(id="VIN", value=" WVW1 "), Parameter(id="parts", value=[1, 2])),
        equipment_requirements=(Equipment(id="Wrench-3"),),
        personnel_requirements=(Personnel(id="anna"),),
        physical_asset_requirements=(PhysicalAsset(id="fixture-1"),),
        material_requirements=(Material(material_lot_id="LOT-7"),),
    )
    job = documents.job | {"order": msgspec.json.encode(given).decode()}
    record = record_of(msgspec.structs.replace(documents, job=job))
    assert terms_of(record, "equipment") == ["wrench-3", "wrench-9"]
    assert terms_of(record, "person") == ["anna", "bert"]
    assert terms_of(record, "asset") == ["fixture-1"]
    assert terms_of(record, "material") == ["lot-7", "lot-8"]
    assert terms_of(record, "parameter.VIN") == ["wvw1"]
    assert record.facts.parameters == {"VIN": " WVW1 "}
    assert terms_of(record, "order") == ["j1"]
    assert terms_of(record, "work_master") == ["linear"]
    assert terms_of(record, "outcome") == ["completed"]


async def test_codes_at_any_level_of_a_result_are_terms(plant: Plant, tool: FakeEquipment) -> None:
    answering(tool, {"code": "(01)0950", "parts": [{"code": "SER-1"}]})
    assert terms_of(await recorded(plant, order("J1")), "code") == ["(01)0950", "ser-1"]


async def test_violated_limits_of_a_batch_are_the_reasons(plant: Plant, tool: FakeEquipment) -> None:
    violation = {"torque": {"measured": 91, "high": 90, "violation": "High"}}
    answering(tool, {"results": [{"violations": {}}, {"violations": violation}]})
    record = await recorded(plant, order("J1"))
    assert record.facts.reasons == ("a: torque high", "b: torque high")
    assert record.remark == "a: torque high"
    assert terms_of(record, "violation") == ["a", "a: torque high", "b", "b: torque high", "torque high"]


@pytest.mark.parametrize("verdict", ["not_ok", "rework", ""])
async def test_verdict_of_the_recipe_is_a_term(plant: Plant, verdict: str) -> None:
    documents = await documents_of(plant, order("J1"))
    record = record_of(msgspec.structs.replace(documents, job=documents.job | {"verdict": verdict}))
    assert record.verdict == verdict
    assert terms_of(record, "verdict") == ([verdict] if verdict else [])


async def test_recipe_is_apart_and_returns(plant: Plant) -> None:
    documents = await documents_of(plant, order("J1"))
    record = record_of(documents)
    assert "recipe" not in record.documents.run
    assert with_recipe(record.documents, record.recipe) == documents


async def test_reasons_are_kept_as_texts_for_readers_of_other_languages(plant: Plant, tool: FakeEquipment) -> None:
    answering(tool, {"violations": {"torque": {"measured": 91, "violation": "High"}}})
    facts = (await recorded(plant, order("J1"))).facts
    assert [reason.in_language("de") for reason in facts.texts] == [
        reason.replace("torque high", "Drehmoment zu hoch") for reason in facts.reasons
    ]
    assert facts.reasons[0].endswith(": torque high")
