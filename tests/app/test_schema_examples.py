"""Examples at the end of docstrings become examples of schemas."""

import msgspec

from edge.app.schema_examples import with_examples


class Bolt(msgspec.Struct):
    """A bolt.

    Example: {"torque": 85.2}
    Example: {"torque": 12}
    """

    torque: float


class Batch(msgspec.Struct):
    """A batch.

    Example: {"name": "A", "bolts": "…"}
    """

    name: str
    bolts: tuple[Bolt, ...]


class Answer(msgspec.Struct):
    """An answer without an example of its own."""

    batch: Batch
    last: Bolt | None = None
    reason: str | None = None


class Tree(msgspec.Struct):
    """A structure that holds itself."""

    name: str
    parts: "tuple[Tree, ...]"


def test_docstring_ends_with_the_examples_of_a_schema() -> None:
    schema = with_examples(msgspec.json.schema(Bolt))
    assert schema["examples"] == [{"torque": 85.2}, {"torque": 12}]
    assert schema["$defs"]["Bolt"]["description"] == "A bolt."


def test_ellipsis_is_the_example_of_the_model_of_a_member() -> None:
    assert with_examples(msgspec.json.schema(Batch))["examples"] == [{"name": "A", "bolts": [{"torque": 85.2}]}]


def test_model_without_an_example_has_those_of_its_structures() -> None:
    (example,) = with_examples(msgspec.json.schema(Answer))["examples"]
    assert example == {"batch": {"name": "A", "bolts": [{"torque": 85.2}]}, "last": {"torque": 85.2}}


def test_structure_that_holds_itself_has_no_example() -> None:
    assert "examples" not in with_examples(msgspec.json.schema(Tree))
