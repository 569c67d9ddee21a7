"""Prompts of runs: listed as they are open, answered exactly once, ended by time, kept by a restart."""

import asyncio
from typing import Any

import pytest

from edge.config import RedisSettings
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import (
    Person,
    PromptAnswered,
    PromptContext,
    PromptRequest,
    answer_prompt,
    load_jobs,
    open_prompts,
)
from edge.features.prompts.open_prompt import OpenPrompt, public_prompt
from edge.foundation.errors import Refused
from edge.model.isa95 import IdCall, Parameter
from edge.model.job_state import Cause, JobState
from edge.model.user import Role
from edge.sfc.run import ActionState
from edge.sfc.signal import Tick
from edge.station.job_call import JobCall
from edge.station.public_result import public_results
from edge.station.stored_job import JobReplay, RecordedRun, find, load_recorded, replay_recorded
from edge.store import responses
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, TYPES, prompt
from tests.station.plant import DEDUPE_MS, SCOPE, Clock, Plant, instance, linear, next_work, order

ANNA = Person("anna", Role.OPERATOR)


async def opened(context: PromptContext) -> tuple[OpenPrompt, ...]:
    return open_prompts(context, await load_jobs(context.runs), (SCOPE,))


async def reply(
    context: PromptContext, person: Person = ANNA, event_id: str = "e1", prompt_id: str = "", **given: Any
) -> PromptAnswered:
    """Answer the only open prompt, or the one with an id."""
    prompt_id = prompt_id or (await opened(context))[0].id
    request = PromptRequest(
        prompt=prompt_id, given=GivenAnswer(**given), person=person, source="test", event_id=event_id, scopes=(SCOPE,)
    )
    return await answer_prompt(context, request)


async def test_prompt_is_open_until_it_is_answered(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    (found,) = await opened(context)
    assert (found.job_id, found.step, found.action, found.scope) == ("J1", "Ask", "ask", SCOPE)
    answered = await reply(context)
    assert (answered.result, answered.by, answered.awaits_second) == ({"confirmed": True}, "anna", False)
    assert await opened(context) == ()
    assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_prompts_of_other_scopes_are_not_listed(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    assert open_prompts(context, await load_jobs(context.runs), ("elsewhere",)) == ()


async def test_answer_from_another_scope_is_refused(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    (found,) = await opened(context)
    request = PromptRequest(
        prompt=found.id, given=GivenAnswer(), person=ANNA, source="t", event_id="1", scopes=("elsewhere",)
    )
    with pytest.raises(Refused) as refused:
        await answer_prompt(context, request)
    assert refused.value.kind == "unknown_prompt"


async def test_oldest_prompt_is_listed_first(plant: Plant, context: PromptContext, clock: Clock) -> None:
    for job_id in ("J2", "J1", "J3"):
        await ask(plant, job_id)
        clock.now += 1000
    assert [found.job_id for found in await opened(context)] == ["J2", "J1", "J3"]


async def test_exactly_one_of_many_answers_counts(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CHOOSE)
    (found,) = await opened(context)
    people = [Person(f"person {number}", Role.OPERATOR) for number in range(20)]
    replies = await asyncio.gather(
        *(
            reply(context, person, f"e{number}", found.id, choice=("ok", "defective")[number % 2])
            for number, person in enumerate(people)
        ),
        return_exceptions=True,
    )
    done = [one for one in replies if isinstance(one, PromptAnswered)]
    refused = [one for one in replies if isinstance(one, Refused)]
    assert (len(done), len(refused)) == (1, 19)
    assert {one.kind for one in refused} == {"not_open"}
    stored = await find(plant.store, "J1")
    assert stored
    (result,) = public_results(stored)
    assert result.result == done[0].result


async def test_exactly_one_answer_counts_at_two_gateways(
    plant: Plant, context: PromptContext, redis: RedisSettings, clock: Clock
) -> None:
    await ask(plant)
    (found,) = await opened(context)
    async with instance(redis, {}, clock, consumer="other") as other:
        elsewhere = PromptContext(other.runs, TYPES, 60_000, DEDUPE_MS)
        assert [one.id for one in await opened(elsewhere)] == [found.id]
        replies = await asyncio.gather(
            *(reply(at, ANNA, f"e{number}", found.id) for number, at in enumerate((context, elsewhere) * 5)),
            return_exceptions=True,
        )
    assert [type(one) for one in replies].count(PromptAnswered) == 1


async def test_request_that_is_sent_again_gets_its_answer(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CONFIRM, {**CHOOSE, "name": "next", "step": "Next"})
    (found,) = await opened(context)
    first, again = [await reply(context, prompt_id=found.id) for _ in range(2)]
    assert (again.job_order_id, again.action, again.result) == ("J1", "ask", {"confirmed": True})
    assert first == again


async def test_refusal_names_the_person_who_answered(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CONFIRM, {**CHOOSE, "name": "next", "step": "Next"})
    (found,) = await opened(context)
    await reply(context)
    with pytest.raises(Refused, match="answered by anna before") as refused:
        await reply(context, Person("ben", Role.OPERATOR), "e2", found.id)
    assert refused.value.kind == "not_open"


async def test_unknown_prompt_is_refused(context: PromptContext) -> None:
    with pytest.raises(Refused, match="no prompt 'nothing' is open"):
        await reply(context, prompt_id="nothing")


async def test_invalid_answer_leaves_the_prompt_open(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", ENTER)
    with pytest.raises(Refused, match="mass is at most 9 kg"):
        await reply(context, values={"mass": 10, "serial": "S"})
    assert len(await opened(context)) == 1


async def test_person_is_metadata_and_no_variable(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", ENTER)
    await reply(context, values={"mass": "5,5", "serial": "S1"})
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    assert stored.run.variables == {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S1"}
    (attempt,) = stored.run.associations.values()
    assert (attempt.resolved_by, attempt.ended_at) == ("anna", plant.runs.clock())
    response = await responses.load(plant.store, await plant.job("J1"))
    assert response
    (attempts,) = [data for data in response.job_response_data or () if data.id == "Attempts"]
    facts = {fact.id: fact.value for fact in (attempts.subparameters or ())[0].subparameters or ()}
    assert (facts["resolved_by"], facts["state"]) == ("anna", "completed")
    assert "end" in facts


async def test_history_of_an_answer_can_be_replayed(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", ENTER, {**prompt("confirm", "second", "Second", second_person=True)})
    await reply(context, values={"mass": 5, "serial": "S1"})
    await reply(context, event_id="e2")
    await reply(context, Person("ben", Role.OPERATOR), "e3")
    recorded = await load_recorded(plant.store, "J1")
    assert isinstance(recorded, RecordedRun)
    replayed = replay_recorded(recorded)
    assert isinstance(replayed, JobReplay)
    assert replayed.is_same


async def test_prompt_times_out_and_cannot_be_answered(plant: Plant, context: PromptContext, clock: Clock) -> None:
    recipe = linear(prompt("confirm", timeout_seconds=5), {**CONFIRM, "name": "late", "step": "Late"})
    recipe["transitions"] = [{"source": "Ask", "target": "Late", "condition": "actions.ask.timed_out"}]
    await plant.teach("timed", recipe)
    await plant.order(Cause.STORE_AND_START, order("J1", "timed"))
    await plant.drive()
    (found,) = await opened(context)
    assert found.until == clock.now + 5000
    clock.now += 5000
    await plant.runs.signal("J1", Tick())
    await plant.drive()
    assert [one.action for one in await opened(context)] == ["late"]
    with pytest.raises(Refused, match="the prompt is over: timed out"):
        await reply(context, prompt_id=found.id)


async def test_prompt_of_an_aborted_job_is_not_open(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    await plant.jobs.call(JobCall(SCOPE, Cause.ABORT, IdCall(job_order_id="J1"), "mes", "abort"))
    await plant.drive()
    assert await opened(context) == ()


@pytest.mark.parametrize("sent", [False, True])
async def test_answer_counts_before_and_after_the_prompt_is_sent(
    plant: Plant,
    context: PromptContext,
    sent: bool,  # noqa: FBT001
) -> None:
    await plant.teach("ask", linear(CONFIRM))
    await plant.order(Cause.STORE_AND_START, order("J1", "ask"))
    await plant.starter.start(await next_work(plant))
    if sent:
        await plant.sender.send_all("J1")
    await reply(context)
    await plant.sender.send_all("J1")
    assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_prompt_stays_open_over_a_restart(
    plant: Plant, context: PromptContext, redis: RedisSettings, clock: Clock
) -> None:
    await ask(plant)
    (before,) = await opened(context)
    async with instance(redis, {}, clock) as restarted:
        again = PromptContext(restarted.runs, TYPES, 60_000, DEDUPE_MS)
        assert await opened(again) == (before,)
        await reply(again)
    assert (await plant.job("J1")).status.state is JobState.ENDED


@pytest.mark.parametrize(
    ("members", "person", "kind"),
    [
        ({"role": "operator"}, Person("button"), "no_login"),
        ({"second_person": True}, Person("the MES"), "no_login"),
        ({"role": "engineer"}, ANNA, "forbidden"),
    ],
)
async def test_prompt_of_a_role_is_refused_to_others(
    plant: Plant, context: PromptContext, members: dict[str, Any], person: Person, kind: str
) -> None:
    await ask(plant, "J1", prompt("confirm", **members))
    with pytest.raises(Refused) as refused:
        await reply(context, person)
    assert refused.value.kind == kind
    assert len(await opened(context)) == 1


async def test_button_answers_a_prompt_without_a_role(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    assert (await reply(context, Person("button 17"))).by == "button 17"


async def test_second_person_confirms_the_same_answer(plant: Plant, context: PromptContext, clock: Clock) -> None:
    await ask(plant, "J1", prompt("choose", choices=[{"value": "ok"}, {"value": "no"}], second_person=True))
    assert (await reply(context, choice="ok")).awaits_second
    (found,) = await opened(context)
    assert (found.first, found.first_until) == ("anna", clock.now + 60_000)
    assert public_prompt(found).first_by == "anna"
    assert (await reply(context, event_id="e2", choice="ok")).awaits_second, "the same person again"
    with pytest.raises(Refused, match="anna asked for it with another result"):
        await reply(context, Person("ben", Role.OPERATOR), "e3", choice="no")
    answered = await reply(context, Person("ben", Role.OPERATOR), "e4", choice="ok")
    assert not answered.awaits_second
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    (attempt,) = stored.run.associations.values()
    assert attempt.resolved_by == "anna and ben"


async def test_first_answer_expires_without_a_second(plant: Plant, context: PromptContext, clock: Clock) -> None:
    await ask(plant, "J1", prompt("confirm", second_person=True))
    await reply(context)
    clock.now += 60_001
    (found,) = await opened(context)
    assert found.first == ""
    assert (await reply(context, Person("ben", Role.OPERATOR), "e2")).awaits_second


async def test_condition_branches_on_the_answer(plant: Plant, context: PromptContext) -> None:
    recipe = {
        "steps": [{"name": "Ask", "initial": True}, {"name": "Good"}, {"name": "Bad"}],
        "transitions": [
            {"source": "Ask", "target": "Good", "condition": "choice == 'ok'"},
            {"source": "Ask", "target": "Bad", "condition": "choice == 'defective'"},
        ],
        "actions": [CHOOSE],
    }
    await plant.teach("branch", recipe)
    await plant.order(Cause.STORE_AND_START, order("J1", "branch"))
    await plant.drive()
    await reply(context, choice="defective")
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    assert stored.run.steps["Bad"].count == 1
    assert "Good" not in stored.run.steps


async def test_parameters_of_the_job_order_do_not_change_who_answers(plant: Plant, context: PromptContext) -> None:
    await plant.teach("role", linear(prompt("confirm", role="engineer")))
    parameters = (Parameter(id="role", value=""), Parameter(id="title", value="Other"))
    await plant.order(Cause.STORE_AND_START, order("J1", "role", job_order_parameters=parameters))
    await plant.drive()
    (found,) = await opened(context)
    assert (found.prompt.role, found.prompt.title) == ("engineer", "Seat the cable")


async def test_public_prompt_is_in_the_language_of_its_reader(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CHOOSE)
    (found,) = await opened(context)
    titles = [[choice.title for choice in public_prompt(found, [language]).choices] for language in ("de", "fr")]
    assert titles == [["Ja", "Defective"], ["Yes", "Defective"]]


async def test_state_of_an_answered_action_is_completed(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CONFIRM, {**CONFIRM, "name": "next", "step": "Next"})
    await reply(context)
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    states = {association.action: association.state for association in stored.run.associations.values()}
    assert states == {"ask": ActionState.COMPLETED, "next": ActionState.DISPATCHED}
