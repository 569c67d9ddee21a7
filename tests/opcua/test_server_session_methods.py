"""A client on another stack calls the methods of the Server object."""

from typing import Any

import pytest

from tests.uaserver.other_stack import OtherStack, node, value_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER, LEVEL, STATE = "i=2253", "i=2267", "i=2256"
MASTERS = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl/WorkMaster"
GET_MONITORED_ITEMS, RESEND_DATA = "i=11492", "i=12873"
U_INT_32 = 7


async def call(other: OtherStack, method: str, *values: Any, at: int = 0) -> dict[str, Any]:
    arguments = [{"dataType": U_INT_32, "value": value} for value in values]
    request = {"objectId": node(SERVER), "methodId": node(method), "inputArguments": arguments}
    (result,) = (await other.send("Call", at=at, methodsToCall=[request]))["results"]
    found: dict[str, Any] = result
    return found


async def test_get_monitored_items_returns_the_handles(other: OtherStack, subscription: int) -> None:
    items = await other.monitor(subscription, value_of(LEVEL), value_of(STATE))
    found = await call(other, GET_MONITORED_ITEMS, subscription)
    assert found["statusCode"] == "Good"
    server, client = (argument["value"] for argument in found["outputArguments"])
    assert (server, client) == ([item["monitoredItemId"] for item in items], [0, 1])


async def test_resend_data_reports_every_value_again(other: OtherStack, subscription: int) -> None:
    await other.monitor(subscription, value_of(LEVEL), value_of(MASTERS))
    assert len(await other.changes(2)) == 2
    assert (await call(other, RESEND_DATA, subscription))["statusCode"] == "Good"
    assert {change["clientHandle"] for change in await other.changes(2)} == {0, 1}


@pytest.mark.parametrize("method", [GET_MONITORED_ITEMS, RESEND_DATA])
async def test_subscription_of_another_session_is_refused(other: OtherStack, subscription: int, method: str) -> None:
    session = await other.send("connect")
    assert (await call(other, method, subscription, at=session))["statusCode"] == "BadUserAccessDenied"
    assert (await call(other, method, 99_999))["statusCode"] == "BadSubscriptionIdInvalid"
    assert (await call(other, method))["statusCode"] == "BadArgumentsMissing"
