"""Messages of a subscription hold as many notifications as its user allows."""

import pytest
from asyncua import Server, ua

from edge.links.opcua_subscription import open_subscription
from edge.opcua.client_transport import BoundedClient

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("most", [1, 10_000])
async def test_server_is_asked_for_few_notifications_per_message(unused_tcp_port: int, most: int) -> None:
    server = Server()
    await server.init()
    url = f"opc.tcp://127.0.0.1:{unused_tcp_port}"
    server.set_endpoint(url)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    client = BoundedClient(url, 4.0, 10.0)
    async with server, client, open_subscription(client, url, most) as opened:
        (subscription,) = server.iserver.subscription_service.subscriptions.values()
        assert subscription.data.RevisedPublishingInterval == 50
        assert opened.parameters.MaxNotificationsPerPublish == most
