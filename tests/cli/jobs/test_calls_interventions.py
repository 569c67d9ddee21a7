"""Tests of `edge jobs retry`, `skip`, `force` and `complete`: effect, permission, and audit record."""

import json
from pathlib import Path

import pytest

from edge.cli.terminal.operator import operator_name
from edge.model.job_state import Cause, JobState
from edge.store import audit
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.station.plant import LINEAR, FakeEquipment, Plant, order, until_true


async def started(plant: Plant, *allowed: str) -> None:
    await plant.teach("attended", LINEAR | {"interventions": list(allowed)})
    await plant.order(Cause.STORE_AND_START, order("J1", "attended"))
    await plant.drive()


async def test_retry_and_skip_complete_a_failed_job(
    edge: Edge, plant: Plant, tool: FakeEquipment, tmp_path: Path
) -> None:
    await started(plant, "retry", "skip")
    await plant.answer(tool.commands[0], error="torque low")
    why = (await edge("jobs", "why", "J1")).output
    assert "action a of one: failed: torque low, attempt 1" in why
    assert "waits for a person, who may retry or skip it" in why
    assert "allowed: edge jobs retry J1 a --step one --reason 'what was seen'" in why
    async with plant.at_work():
        answer = await edge("jobs", "retry", "J1", "a", "--reason", "bit replaced")
        assert (answer.exit_code, answer.output) == (0, "job J1: retry of a is carried out\n")
        await until_true(lambda: [command.attempt for command in tool.commands] == [1, 2])
        skipped = await edge("jobs", "skip", "J1", "a", "--data", '{"torque": 85}', "--reason", "by hand", "--json")
        assert json.loads(skipped.output)["awaits_second"] is False
        await until_true(lambda: tool.received() == ["a", "a", "b"])
        await plant.answer(tool.commands[-1])
        await plant.until_state("J1", JobState.ENDED)
    history = (await edge("jobs", "history", "J1")).output
    assert "skip a by" in history
    assert "by hand" in history
    assert (await edge("jobs", "replay", "J1")).exit_code == 0
    await edge("jobs", "history", "J1", "--svg", tmp_path / "j.svg")
    assert (tmp_path / "j.svg").read_text().count('<line class="person"') == 2


async def test_force_and_complete_move_the_chart(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "force", "complete")
    assert (await edge("jobs", "force", "J1", "one", "nowhere", "--reason", "x")).exit_code == 1
    async with plant.at_work():
        assert (await edge("jobs", "force", "J1", "one", "two", "--reason", "sensor defect")).exit_code == 0
        assert (await edge("jobs", "complete", "J1", "two", "--reason", "done by hand")).exit_code == 0
        await plant.until_state("J1", JobState.ENDED)
        await until_true(lambda: len(tool.commands) >= 1)


async def test_intervention_not_allowed_by_the_recipe_is_refused(edge: Edge, plant: Plant) -> None:
    await started(plant)
    refused = await edge("jobs", "skip", "J1", "a", "--reason", "x")
    assert (refused.exit_code, "the recipe does not allow skip" in refused.output) == (1, True)
    assert (await edge("jobs", "skip", "J1", "a")).exit_code == 2
    assert (await edge("jobs", "skip", "J1", "a", "--data", "{", "--reason", "x")).exit_code == 2


async def test_step_is_completed_by_two_engineers_and_refused_to_an_operator(
    edge: Edge,
    plant: Plant,
    store: Store,
    settings_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with settings_file.open("a") as settings:
        settings.write(f'[users]\nfile = "{tmp_path / "users"}"\ncli = "login"\nsecond_person = ["complete"]\n')
    for name, role in (("anna", "engineer"), ("bert", "engineer"), ("olga", "operator")):
        await edge("users", "add", name, "--role", role, "--password-stdin", given="correct horse\n")
    await started(plant, "complete")
    answers = []
    for name in ("olga", "anna", "anna", "bert"):
        await edge("users", "login", name, "--password-stdin", given="correct horse\n")
        answers.append(await edge("jobs", "complete", "J1", "one", "--reason", "part is in place"))
        if name == "anna":
            why = (await edge("jobs", "why", "J1")).output
            assert "complete one, asked for by anna (" in why
            assert "waits for a second person" in why
    operator, first, repeated, second = answers
    assert "needs the role engineer" in operator.output
    assert first.output == repeated.output
    assert "complete of one waits: another person must ask for the same" in first.output
    assert second.output == "job J1: complete of one is carried out\n"
    records = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 50)]
    taken = [
        (record["user"].partition(" (")[0], record["status"])
        for record in records
        if record["action"] == "jobs complete"
    ]
    assert [name for name, _ in taken] == [operator_name().partition(" (")[0], "anna", "anna", "bert"]
    assert taken[3][1] == "Good"
    assert "another person" in taken[1][1]
