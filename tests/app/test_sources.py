"""Sources of the settings are opened with the gateway."""

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings, TelemetrySettings
from edge.config.telemetry import RedisSourceSettings
from edge.store import telemetry
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.telemetry.plant import until_async


async def test_key_of_a_foreign_redis_is_recorded(redis: RedisSettings, store: Store) -> None:
    await store.execute("SET", "foreign:load", "7")
    source = RedisSourceSettings(kind="redis", url=redis.url, keys=("foreign:load",), interval=0.05)
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=""),
        opcua=NO_OPCUA,
        telemetry=TelemetrySettings(record="all"),
        source={"line": source},
    )

    async def is_recorded() -> bool:
        found = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
        return "foreign.load" in str(found)

    async with open_gateway(settings) as summary:
        assert "1 sources of samples" in summary
        await until_async(is_recorded)
        await until_async(lambda: _is_evaluated(store))


async def _is_evaluated(store: Store) -> bool:
    return (await telemetry.read_lengths(store)).lag == 0
