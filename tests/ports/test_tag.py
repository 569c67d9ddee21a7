"""The schema of definitions of tags accepts what the model accepts."""

from typing import Any

import jsonschema
import msgspec
import pytest

from edge.ports.tag import TagDefinition, tags_schema


@pytest.mark.parametrize(
    ("item", "valid"),
    [
        ({"tag": "t"}, True),
        ({"tag": "t", "unit": "CEL", "type": "number", "low": 0, "high": 1.5, "description": "x"}, True),
        ({"tag": ""}, False),
        ({"tag": "t", "unit": "°C"}, False),
        ({"tag": "t", "type": "float"}, False),
        ({"tag": "t", "other": 1}, False),
    ],
)
def test_schema_and_model_accept_the_same(item: dict[str, Any], valid: bool) -> None:  # noqa: FBT001 - a parameter
    assert jsonschema.Draft202012Validator(tags_schema()).is_valid([item]) is valid
    if valid:
        msgspec.convert(item, TagDefinition)
    else:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(item, TagDefinition)
