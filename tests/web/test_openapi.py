"""The OpenAPI document describes every operation, and the answers are as it says."""

from collections.abc import Mapping
from typing import Any

import jsonschema

from edge.web.openapi import openapi, operation_id
from edge.web.operations import OPERATIONS
from tests.web.serving import IN_PATHS, Browser


def test_every_operation_has_its_own_name_and_every_reference_a_target() -> None:
    document = openapi()
    names = [operation_id(each) for each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert {path.removeprefix("/api/v1") for path in document["paths"]} >= {each.path for each in OPERATIONS}


async def test_answers_have_the_types_of_the_document(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    document = (await browser.get("/api/v1/openapi.json")).json
    for path, methods in document["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" in content:
            reply = await engineer.get(path.format_map(IN_PATHS))
            missing = {"/flows/{flow}": 409, "/tags/{tag}/trend": 404}
            assert reply.status == missing.get(path.removeprefix("/api/v1"), 200), path
            found = content if reply.status == 200 else methods["get"]["responses"]["default"]["content"]
            schema = found["application/json"]["schema"] | {"components": document["components"]}
            jsonschema.validate(reply.json, schema)
    problem = {"$ref": "#/components/schemas/Problem", "components": document["components"]}
    jsonschema.validate((await browser.get("/api/v1/jobs")).json, problem)


def references(found: Any) -> set[str]:
    match found:
        case Mapping():
            inner = set().union(*map(references, found.values())) if found else set()
            return inner | ({found["$ref"]} if "$ref" in found else set())
        case list():
            return set().union(*map(references, found)) if found else set()
        case _:
            return set()
