"""A person on another stack intervenes in a job: each method, its arguments, and the role that it needs."""

from typing import Any

import pytest

from edge.model.recipe import Intervention
from edge.model.user import Role
from edge.sfc.signal import Intervene
from tests.uaserver.other_stack import OtherStack, node, other_stack
from tests.uaserver.running import MACHINES, Station, served
from tests.uaserver.test_methods_resolve import MANAGEMENT, text


async def invoke(client: OtherStack, method: str, *arguments: dict[str, Any]) -> str:
    control = f"{MANAGEMENT}/JobOrderControl"
    call = {"objectId": node(control), "methodId": node(f"{control}/{method}"), "inputArguments": list(arguments)}
    response = await client.send("Call", methodsToCall=[call])
    return str(response["results"][0]["statusCode"])


CALLS: dict[str, tuple[tuple[str, ...], Intervene]] = {
    "RetryAction": (
        ("J1", "tighten", "", "bit replaced"),
        Intervene(Intervention.RETRY, "tighten", reason="bit replaced", by="anonymous"),
    ),
    "SkipAction": (
        ("J1", "tighten", "Tighten", "by hand", '{"torque": 85}'),
        Intervene(Intervention.SKIP, "tighten", "Tighten", "", {"torque": 85}, "by hand", "anonymous"),
    ),
    "ForceTransition": (
        ("J1", "Load", "Tighten", "sensor defect"),
        Intervene(Intervention.FORCE, step="Load", target="Tighten", reason="sensor defect", by="anonymous"),
    ),
    "CompleteStep": (
        ("J1", "Load", "part is in place"),
        Intervene(Intervention.COMPLETE, step="Load", reason="part is in place", by="anonymous"),
    ),
}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ENGINEER])
async def test_each_method_requests_its_intervention_if_the_role_permits(role: Role) -> None:
    station = Station()
    async with (
        served(machines=MACHINES[:1], station=station, role=role) as server,
        other_stack(server.endpoint) as client,
    ):
        for method, (texts, signal) in CALLS.items():
            station.reset()
            status = await invoke(client, method, *map(text, texts))
            if role is Role.OPERATOR and method in {"ForceTransition", "CompleteStep"}:
                assert (status, station.resolved) == ("BadUserAccessDenied", [])
                continue
            assert status == "Good"
            (request,) = station.resolved
            assert (request.scope, request.job_id, request.signal) == ("station-1", "J1", signal)
            assert not request.has_login
        assert await invoke(client, "RetryAction", *map(text, ("J1", "tighten", "", " "))) == "BadInvalidArgument"
