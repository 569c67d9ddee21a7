"""The OpenAPI document describes every operation, and answers conform to it, also to requests by schemathesis."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import jsonschema
import pytest
import pytest_asyncio
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from edge.access.login import Users
from edge.features.page.openapi import openapi, operation_id, subjects_of, types_of
from edge.features.page.operations import OPERATIONS
from tests.features.page.serving import IN_PATHS, Browser, services_of, serving
from tests.station.plant import Plant

_OWN_TESTS = {"/api/v1/events", "/api/v1/session", "/api/v1/backups/upload"}
"""A stream without end, what logs the client out, and what takes a file."""
_CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
)


def test_every_operation_has_its_own_name_and_every_reference_a_target() -> None:
    document = openapi()
    names = [operation_id(api_operation) for api_operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert {path.removeprefix("/api/v1") for path in document["paths"]} >= {
        api_operation.path for api_operation in OPERATIONS
    }


async def test_answers_have_the_types_of_the_document(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    document = (await browser.get("/api/v1/openapi.json")).json
    for path, methods in document["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" in content:
            reply = await engineer.get(path.format_map(IN_PATHS))
            missing = {"/flows/{flow}": 409, "/tags/{tag}/trend": 404}
            # The recipe was stored without a revision, and there is no draft.
            revision = "revisions/{revision}"
            unknown = (revision, f"{revision}/tests", f"{revision}/replay", "difference")
            missing |= {f"/recipes/{{scope}}/{{recipe}}/{end}": 404 for end in unknown}
            missing |= {
                f"/recipe-drafts/{{draft}}{end}": 404
                for end in ("", "/check", "/tests", "/replay", "/names", "/difference")
            }
            # The gateway has no archive.
            missing |= dict.fromkeys(("/results", "/results/{result}", "/results-analysis", "/results-export"), 409)
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


@pytest_asyncio.fixture
async def page(plant: Plant, users: Users) -> AsyncIterator[Browser]:
    """A page that does not count requests."""
    async with serving(services_of(plant, users, most_requests=1_000_000)) as browser:
        yield browser


def _operations() -> Iterator[Any]:
    for result in schemathesis.openapi.from_dict(openapi()).get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        if operation.path not in _OWN_TESTS:
            yield operation


def _exercise(browser: Browser, examples: int) -> int:
    """Send generated requests to every operation; return their number."""
    headers = {"Cookie": browser.cookie, "Origin": browser.origin}
    sent = 0
    for operation in _operations():
        cases = st.one_of(
            *(operation.as_strategy(generation_mode=generation_mode) for generation_mode in GenerationMode)
        )

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, is_known=st.booleans())
        def exchange(case: Case[Any], *, is_known: bool) -> None:
            nonlocal sent
            if is_known:
                case.path_parameters = {name: IN_PATHS[name] for name in case.path_parameters or {}}
            response = case.call(base_url=browser.origin, headers=headers, timeout=60)
            case.validate_response(response, checks=list(_CHECKS))
            sent += 1

        exchange()
    return sent


@pytest.mark.slow
async def test_sample_requests_are_answered_as_documented(page: Browser) -> None:
    engineer = await page.logged_in("max")
    assert await asyncio.to_thread(_exercise, engineer, 2) > len(list(_operations()))


@pytest.mark.long  # thousands of requests
@pytest.mark.parametrize("name", ["eve", "alice", "max"])
async def test_many_requests_of_each_role_are_answered_as_documented(page: Browser, name: str) -> None:
    person = await page.logged_in(name)
    assert await asyncio.to_thread(_exercise, person, 40) > 1_000


def test_operations_are_grouped_by_subject() -> None:
    found = subjects_of(openapi())
    assert {"jobs", "alarms", "session", "events"} <= found.keys()
    order = next(job for job in found["jobs"] if (job.method, job.path) == ("POST", "/api/v1/jobs"))
    assert (order.role, order.body and order.body.link, order.answer and order.answer.link) == (
        "engineer",
        "JobOrderBody",
        "MethodDone",
    )
    (events,) = found["events"]
    assert events.answer
    assert events.answer.text == "text/event-stream"
    assert {read_operation.method for read_operation in found["session"]} == {"POST", "DELETE"}


def test_types_are_described_in_words() -> None:
    found = {
        read_type.name: {read_member.name: read_member for read_member in read_type.members}
        for read_type in types_of(openapi())
    }
    assert found["MethodDone"]["job"].type.text in {"PublicJob or null", "null or PublicJob"}
    assert found["MethodDone"]["job"].type.link == "PublicJob"
    assert found["AlarmHistory"]["changes"].type.text == "list of PublicAlarmChange"
    assert found["InterventionRequestBody"]["kind"].type.text == "complete | force | retry | skip"
    assert found["InterventionRequestBody"]["reason"].type.text == "string, 1 to 1000"
    assert not found["InterventionRequestBody"]["step"].is_required


def test_descriptions_have_no_example_of_a_docstring() -> None:
    assert "Example:" not in json.dumps(openapi())
