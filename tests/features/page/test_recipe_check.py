"""The program that checks recipes answers one request after the other."""

import io

import msgspec

from edge.features.page.recipe_check import LENGTH_BYTES, CheckRequest, check_recipe, serve
from edge.features.page.recipe_models import RecipeResult
from tests.station.plant import LINEAR


def framed(recipe: object, *active: str) -> bytes:
    request = msgspec.json.encode(CheckRequest(recipe, active))
    return len(request).to_bytes(LENGTH_BYTES, "big") + request


def test_each_request_is_answered_as_the_check_in_this_process() -> None:
    results = io.BytesIO()
    serve(io.BytesIO(framed(LINEAR, "tighten") + framed({"steps": []})), results)
    results.seek(0)
    for recipe, active in ((LINEAR, ["tighten"]), ({"steps": []}, [])):
        length = int.from_bytes(results.read(LENGTH_BYTES), "big")
        assert msgspec.json.decode(results.read(length), type=RecipeResult) == check_recipe(recipe, active)
    assert results.read() == b""


def test_input_that_ends_within_a_head_ends_the_program() -> None:
    results = io.BytesIO()
    serve(io.BytesIO(b"\x00"), results)
    assert results.getvalue() == b""
