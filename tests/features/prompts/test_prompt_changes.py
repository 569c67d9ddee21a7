"""Prompts that open are in the commit of their decision; their events have the same id each time they are made."""

import msgspec

from edge.features.prompts import keys as prompts_keys
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, PromptContext, Prompts
from edge.features.prompts.prompt_changes import (
    PromptWatch,
    StoredPrompt,
    cloud_event,
    end_of,
    opened_with,
    opening_of,
    stored_form,
)
from edge.model.user import Role
from edge.sfc.signal import Tick
from edge.station.active_runs import ActiveRuns
from tests.features.prompts.conftest import ask, start
from tests.features.prompts.recipes import CHOOSE, CONFIRM, TYPES, prompt
from tests.station.plant import SCOPE, Clock, Plant, linear

ANNA = Person("anna", Role.OPERATOR)


async def stored(plant: Plant) -> dict[str, StoredPrompt]:
    texts = await plant.store.execute("HGETALL", prompts_keys.prompts(plant.store.keys, SCOPE))
    return {prompt_id: msgspec.json.decode(text, type=StoredPrompt) for prompt_id, text in texts.items()}


def announce(plant: Plant) -> None:
    plant.runs.additions.append(lambda decision: opened_with(plant.store.keys, TYPES, decision))


def prompts_of(plant: Plant, context: PromptContext) -> tuple[Prompts, ActiveRuns]:
    active = ActiveRuns(plant.runs, (SCOPE,))
    return Prompts(context, (SCOPE,), lambda: tuple(active.loaded.values())), active


async def test_prompt_that_opens_is_stored_with_its_decision(plant: Plant, context: PromptContext) -> None:
    announce(plant)
    prompts, _ = prompts_of(plant, context)
    await ask(plant, "J1", CHOOSE, prompt("confirm", name="other", step="Other"))
    first, *_ = prompts.open
    (entry,) = (await stored(plant)).values()
    assert (entry.prompt.id, entry.prompt.job_order_id, entry.is_announced) == (first.id, "J1", False)
    await prompts.answer(first.id, GivenAnswer(choice="ok"), ANNA, "test", "1")
    assert [entry.prompt.action for entry in (await stored(plant)).values()] == ["ask", "other"]


async def test_events_of_a_prompt_have_its_answer_and_one_id_each(plant: Plant, context: PromptContext) -> None:
    prompts, active = prompts_of(plant, context)
    await ask(plant, "J1", CHOOSE)
    (found,) = prompts.open
    form = stored_form(found, active.loaded["J1"])
    opening = cloud_event("urn:x", form, opening_of(form))
    assert (opening.id, opening.subject, opening.data.change) == (f"prompt/{found.id}/opened", SCOPE, "opened")
    await prompts.answer(found.id, GivenAnswer(choice="defective"), ANNA, "test", "1")
    loaded = await plant.runs.load_readable("J1")
    ends = [end_of(form, loaded, now) for now in (1_000, 2_000)]
    assert ends[0] == ends[1]
    assert (ends[0].outcome, ends[0].result, ends[0].by) == ("completed", {"choice": "defective"}, "anna")
    assert cloud_event("urn:x", form, ends[0]).id == f"prompt/{found.id}/ended"


async def test_end_without_an_answer_has_its_outcome(plant: Plant, context: PromptContext, clock: Clock) -> None:
    prompts, active = prompts_of(plant, context)
    await ask(plant, "J1", prompt("confirm", timeout_seconds=5))
    (found,) = prompts.open
    form = stored_form(found, active.loaded["J1"])
    clock.now += 6_000
    await plant.runs.signal("J1", Tick())
    end = end_of(form, await plant.runs.load_readable("J1"), clock.now)
    assert (end.outcome, end.result, end.by) == ("timed_out", None, "")
    assert end_of(form, None, clock.now).outcome == ""


async def test_answer_of_an_earlier_try_keeps_its_person(plant: Plant, context: PromptContext) -> None:
    """The step asks again: the first answer belongs to a past attempt."""
    prompts, active = prompts_of(plant, context)
    recipe = linear(CONFIRM) | {
        "steps": [{"name": "Ask", "initial": True}, {"name": "Done"}],
        "transitions": [
            {"source": "Ask", "target": "Ask", "condition": "actions.ask.attempts < 2", "priority": 1},
            {"source": "Ask", "target": "Done", "condition": "always", "priority": 2},
        ],
    }
    await start(plant, "J1", recipe)
    (first,) = prompts.open
    form = stored_form(first, active.loaded["J1"])
    await prompts.answer(first.id, GivenAnswer(), ANNA, "test", "1")
    assert [found.id for found in prompts.open] != [first.id]
    assert end_of(form, await plant.runs.load_readable("J1"), 0).by == "anna"


async def test_watch_reports_a_run_only_when_its_prompts_change(plant: Plant, context: PromptContext) -> None:
    prompts, active = prompts_of(plant, context)
    changes: list[tuple[str, bool]] = []
    watch = PromptWatch(prompts, lambda job_id, loaded: changes.append((job_id, loaded is not None)))
    active.listeners.append(watch.note)
    await ask(plant, "J1", prompt("confirm", timeout_seconds=500))
    assert changes == [("J1", True)]
    await plant.runs.signal("J1", Tick())
    assert len(changes) == 1
    await prompts.answer(prompts.open[0].id, GivenAnswer(), ANNA, "test", "1")
    assert len(changes) == 2
