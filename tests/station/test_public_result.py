"""The public form of a result has its values, and its size in its place where it is too large."""

from edge.model.job_state import Cause
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, PersonAnswer
from edge.station.public_result import measured_values, public_results
from edge.station.stored_job import load
from tests.station.plant import Clock, FakeEquipment, Plant, action, linear, order


async def test_large_result_is_stated_by_its_size(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answer(tool.commands[0], {"text": "x" * 90})
    stored_job = await load(plant.store, "J1")
    (whole,), (bounded,) = public_results(stored_job, largest=101), public_results(stored_job, largest=100)
    assert (whole.result, bounded.result) == ({"text": "x" * 90}, {"bytes": 101})
    assert (whole.values, whole.sending, whole.late) == (bounded.values, "sent", False)
    assert public_results(stored_job)[0].result == whole.result


LOW = {"torque": {"measured": {"value": 3.1, "unit": "Nm"}, "low": {"value": 8.0, "unit": "Nm"}}}


async def test_failed_attempt_is_listed_with_its_cause_and_who_retried_it(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    titled = action("a", "one") | {"title": {"en": "Tighten", "de": "Anziehen"}}
    await plant.teach("helped", linear(titled) | {"interventions": ["retry"]})
    await plant.order(Cause.STORE_AND_START, order("J1", "helped"))
    await plant.drive()
    await plant.answer(tool.commands[0], error="torque low")
    await plant.runs.signal("J1", Intervene(Intervention.RETRY, action="a", reason="bolt was loose", by="ben"))
    clock.now += 1000
    await plant.drive()
    await plant.answer(tool.commands[1], error="E17")
    first, second = public_results(await load(plant.store, "J1"), language="de")
    assert (first.title, first.attempt, first.state, second.attempt) == ("Anziehen", 1, "failed", 2)
    assert first.error == "fehlgeschlagen: torque low"
    assert first.decided == "Wiederholen, von ben: bolt was loose"
    assert (second.error, second.result, second.decided) == ("fehlgeschlagen: E17", None, "")


async def test_result_states_the_limits_that_it_violates(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answer(tool.commands[0], {"violations": LOW})
    (result,) = public_results(await load(plant.store, "J1"), language="de")
    assert result.causes == ("Drehmoment 3.1 Nm unter 8 Nm",)


async def test_choice_is_stated_in_words_and_fields_by_their_titles(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    choices = {"choices": [{"value": "not_ok", "title": {"en": "Not OK", "de": "Nicht in Ordnung"}}]}
    fields = {"fields": [{"name": "serial_no", "title": {"de": "Seriennummer"}}]}
    asks = [action(name, name, parameters=given) for name, given in (("a", choices), ("b", fields))]
    await plant.teach("asks", linear(*asks))
    await plant.order(Cause.STORE_AND_START, order("J1", "asks"))
    for number, data in enumerate(({"choice": "not_ok"}, {"serial_no": "S1"})):
        await plant.drive()
        clock.now += 1000
        await plant.runs.signal("J1", PersonAnswer(tool.commands[number].command_id, data, "anna"))
    choice, entered = public_results(await load(plant.store, "J1"), language="de")
    assert (choice.answer, choice.by, choice.values) == ("Nicht in Ordnung", "anna", ())
    assert choice.result == {"choice": "not_ok"}
    assert [(value.name, value.value) for value in entered.values] == [("Seriennummer", "S1")]


def test_measured_values_are_the_numbers_of_a_result_that_have_a_unit() -> None:
    torque = {"value": 85.2, "unit": "Nm"}
    result = {
        "torque": torque,
        "count": 3,
        "text": {"value": "tight", "unit": "Nm"},
        "results": {"2": {"torque": torque}},
    }
    assert [(found.name, found.value, found.unit) for found in measured_values(result)] == [
        ("torque", 85.2, "Nm"),
        ("results.2.torque", 85.2, "Nm"),
    ]
    assert [found.name for found in measured_values({"value": 3, "unit": "kg"})] == ["value"]
    assert list(measured_values({str(number): torque for number in range(9)}, most=2))[2:] == []
    assert list(measured_values(None)) == list(measured_values({"ok": {"value": True, "unit": "1"}})) == []
