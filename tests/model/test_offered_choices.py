"""The choices of a prompt are read with their titles, whatever a recipe or a result has in their place."""

from edge.model.offered_choices import asks_a_person, chosen_value, field_titles, offered_choices, prompt_title

PARAMETERS = {
    "title": {"en": "Flush?", "de": "Bündig?"},
    "choices": [
        {"value": "ok", "title": {"de": "Ja"}},
        {"value": "bad"},
        {"value": 3},
        "odd",
        {"value": "x", "title": 1},
    ],
    "fields": [{"name": "serial_no"}, {"name": "mass", "title": "Weight"}],
}


def test_titles_of_choices_and_fields_are_read_by_their_names() -> None:
    assert offered_choices(PARAMETERS) == {"ok": {"de": "Ja"}, "bad": "bad", "x": "x"}
    assert field_titles(PARAMETERS) == {"serial_no": "Serial no", "mass": "Weight"}
    assert prompt_title(PARAMETERS) == {"en": "Flush?", "de": "Bündig?"}
    assert asks_a_person(PARAMETERS)


def test_parameters_of_a_tool_offer_nothing() -> None:
    for parameters in ({}, {"program": 3}):
        assert (offered_choices(parameters), field_titles(parameters), prompt_title(parameters)) == ({}, {}, "")
        assert not asks_a_person(parameters)


def test_result_without_a_choice_has_none() -> None:
    assert chosen_value({"choice": "ok"}) == "ok"
    assert [chosen_value(result) for result in ({"choice": 3}, {}, None, "ok")] == [""] * 4
