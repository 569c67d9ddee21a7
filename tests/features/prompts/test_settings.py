"""The settings of the kind `operator`: the end of each type says how a person answers."""

from edge.config import Settings
from edge.features.prompts.settings import OperatorSettings, operator_types


def test_type_with_another_end_is_named() -> None:
    section = OperatorSettings(kind="operator", type_ids=("x.operator.confirm.v1", "x.ask.v1"))
    assert list(map(str, section.conflicts(Settings()))) == [
        "type_ids: x.ask.v1 does not end with operator.confirm.v1, operator.choose.v1 or operator.enter.v1"
    ]


def test_types_of_all_sections_are_those_of_people() -> None:
    sections = {
        name: OperatorSettings(kind="operator", type_ids=(f"{name}.operator.confirm.v1",)) for name in ("a", "b")
    }
    assert operator_types(Settings(southbound=sections)) == {"a.operator.confirm.v1", "b.operator.confirm.v1"}
    assert operator_types(Settings()) == frozenset()
