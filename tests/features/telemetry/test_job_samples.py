"""Decisions about jobs become samples and occurrences, in the commit of the decision."""

from typing import Any

from edge.features.telemetry.alarm_publisher import ALARM_CALLER
from edge.features.telemetry.built_in_rules import JOB_ABORTED_RULE, with_built_in
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.job_samples import JOB_STOPPED, JobSamples, result_members
from edge.features.telemetry.model.rule import OccursRule
from edge.features.telemetry.rules.alarm import render_message
from edge.foundation.text import Text
from edge.model.isa95 import IdCall, LocalizedText
from edge.model.job_state import Cause, JobState
from edge.ports.batch import decode_batch
from edge.ports.sample_lines import Line, Occurrence, Sample
from edge.station.equipment import EquipmentAnswer
from edge.station.job_call import JobCall
from edge.store.client import Store
from edge.store.reads import entries
from tests.station.plant import SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order, until_true

ACTION = {"step": "A", "qualifier": "N", "interaction": "push_command", "type_id": TIGHTEN}
RECIPE = {
    "steps": [{"name": "A", "initial": True}, {"name": "B"}],
    "transitions": [{"source": "A", "target": "B", "condition": "always"}],
    "actions": [ACTION | {"name": "a", "parameters": {"joining_process_id": "P1", "carrier_id": "C7"}}],
}


async def recorded(store: Store) -> list[Line]:
    raw = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
    return [line for entry in entries(raw) for line in decode_batch(entry.fields)[0].lines]


def shown(line: Line) -> tuple[object, ...]:
    if isinstance(line, Occurrence):
        return (line.name, line.job)
    assert (line.job, line.action, line.carrier) == ("J1", "a", "C7")
    return (line.tag, line.value, line.process)


async def run_job(store: Store, data: Any, *, record_all: bool) -> list[object]:
    """Run a job whose only command has this result; return what was recorded."""
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool}, Clock())
    samples = JobSamples(plant.store.keys, RuleInterest((), record_all=record_all), {TIGHTEN: "wrench"}, 100)
    plant.runs.additions.append(samples.commit_for)
    await plant.teach("one", RECIPE)
    tool.replies = lambda command: EquipmentAnswer(command.command_id, data)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "one"))
        await until_true(lambda: plant.runs.cached("J1") is None and bool(tool.commands))
    return [shown(line) for line in await recorded(plant.store)]


async def test_results_are_recorded_between_start_and_end_of_their_job(store: Store) -> None:
    data = {"torque": {"value": 85.2, "unit": "Nm"}, "evaluation": "OK", "values": {"speed": 5}, "trace": [1, 2]}
    found = await run_job(store, data, record_all=True)
    assert found == [
        ("job.started", "J1"),
        ("wrench.torque", 85.2, "P1"),
        ("wrench.evaluation", "OK", "P1"),
        ("wrench.values.speed", 5, "P1"),
        ("job.ended", "J1"),
    ]


async def test_result_that_no_rule_uses_is_not_recorded(store: Store) -> None:
    assert await run_job(store, {"torque": 1}, record_all=False) == []


def test_result_of_one_value_is_named_result() -> None:
    assert list(result_members(5)) == [("result", 5)]
    assert Sample(1, "t", 1).process is None


async def test_only_a_job_that_no_person_ended_is_an_alarm(store: Store) -> None:
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool}, Clock())
    samples = JobSamples(plant.store.keys, RuleInterest((), record_all=True), {TIGHTEN: "wrench"}, 100)
    plant.runs.additions.append(samples.commit_for)
    await plant.teach("one", RECIPE)
    person, interlock = Text.of("anna at the station page"), Text.of(ALARM_CALLER, rule="door")
    ends = ((Cause.STOP, person), (Cause.ABORT, person), (Cause.STOP, interlock), (Cause.ABORT, interlock))
    async with plant.at_work():
        for number, (cause, by) in enumerate(ends, 1):
            await plant.order(Cause.STORE_AND_START, order(f"J{number}", "one"))
            await until_true(lambda count=number: len(tool.received()) == count)  # type: ignore[misc]
            comment = (LocalizedText(text="ring is scratched"),)
            call = IdCall(job_order_id=f"J{number}", comment=comment)
            await plant.jobs.call(JobCall(SCOPE, cause, call, "mes", f"e{number}", by=by))
        tool.replies = lambda command: EquipmentAnswer(command.command_id, error="torque low")
        await plant.order(Cause.STORE_AND_START, order("J5", "one"))
        await plant.until_state("J5", JobState.ABORTED)
    (rule,) = (rule for rule in with_built_in(()) if rule.id == JOB_ABORTED_RULE)
    ended = [line for line in await recorded(store) if isinstance(line, Occurrence) and line.name != "job.started"]
    assert isinstance(rule, OccursRule)
    alarmed = [line.job for line in ended if line.name == rule.pattern]
    assert alarmed == ["J3", "J4", "J5"]
    assert [line.job for line in ended if line.name == JOB_STOPPED] == ["J1", "J2"]
    texts = {
        line.job: render_message(rule.message or "", {"job": line.job, "data": line.data})
        for line in ended
        if line.data
    }
    assert texts["J3"]["en"] == "job J3 did not complete: stopped by alarm door: ring is scratched"
    assert texts["J4"]["en"].startswith("job J4 did not complete: aborted")
    assert texts["J5"]["en"].startswith("job J5 did not complete: failed: action 'a'")
    assert texts["J5"]["de"].startswith("Auftrag J5 wurde nicht fertig: fehlgeschlagen: ")
