"""A method of a camera returns its outputs, or its Error as a refusal."""

from typing import Any, cast

import pytest

from edge.features.vision.methods import call_method, find_part
from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, Node

OWNER = Node("i=1", "/Camera")


class Answering:
    """A session whose every call has the same outputs."""

    def __init__(self, outputs: list[Any]) -> None:
        self._outputs = outputs

    async def call(self, *_: object) -> list[Any]:
        return self._outputs


async def test_outputs_are_returned_without_the_error() -> None:
    session = cast("ClientSession", Answering(["V1", 0]))
    assert await call_method(session, OWNER, "StartSingleJob") == ["V1"]


@pytest.mark.parametrize(("outputs", "reason"), [(["V1", 7], "the camera says error 7"), (["V1"], "OPC 40100-1")])
async def test_error_of_a_method_is_a_refusal(outputs: list[Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        await call_method(cast("ClientSession", Answering(outputs)), OWNER, "StartSingleJob")


def test_missing_part_is_refused_by_name() -> None:
    assert find_part({"Camera": OWNER}, "Camera") is OWNER
    with pytest.raises(Refused, match="no RecipeManagement"):
        find_part({}, "RecipeManagement")
