"""Locks are listed and deleted through a gateway in the same way as at the store."""

from pathlib import Path

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, OpcuaSettings, RedisSettings, RpcSettings, Settings
from edge.store.client import Store
from tests.access.test_locks import JOB, put
from tests.cli.calling import Edge


async def test_client_without_store_access_lists_and_deletes_by_the_gateway(
    redis: RedisSettings, store: Store, edge: Edge, tmp_path: Path
) -> None:
    url = f"unix://{tmp_path}/rpc.sock"
    no_opcua = OpcuaSettings(endpoint="")
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=no_opcua, rpc=RpcSettings(listen=url))
    await put(store, JOB, "J1", "anna")
    async with open_gateway(settings):
        assert "J1" in (await edge("locks", "list", "--rpc", url)).output
        refused = await edge("locks", "delete", "job", "--rpc", url)
        assert refused.exit_code == 1
        assert "is alive" in refused.output
        assert "job J1: deleted" in (await edge("locks", "delete", "job", "--force", "--rpc", url)).output
        assert "anna" not in (await edge("locks", "list", "--rpc", url)).output
