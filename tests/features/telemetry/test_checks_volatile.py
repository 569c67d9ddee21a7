"""The doctor examines the second Redis if samples are stored in it."""

from edge.config import RedisSettings, Settings
from edge.features.admin.doctor import findings_of
from edge.features.telemetry.checks import examine_volatile_store
from edge.features.telemetry.settings import TelemetrySettings
from edge.model.finding import PublicHealthFinding, public_form


async def found(settings: Settings) -> list[PublicHealthFinding]:
    return list(map(public_form, await findings_of("volatile store", examine_volatile_store(settings))))


async def test_second_store_that_writes_files_is_a_warning(redis: RedisSettings) -> None:
    (finding,) = await found(
        Settings(sections={"telemetry": TelemetrySettings(keep="volatile", volatile_url=redis.url)})
    )
    assert "it writes files" in finding.found
    assert "microdcs-edge-telemetry-store" in finding.advice


async def test_absent_second_store_is_a_failure() -> None:
    telemetry = TelemetrySettings(keep="volatile", volatile_url="unix:///nowhere/redis.sock")
    (finding,) = await found(Settings(sections={"telemetry": telemetry}))
    assert "Redis does not answer" in finding.found


async def test_durable_samples_need_no_second_store() -> None:
    assert await found(Settings(sections={"telemetry": TelemetrySettings(keep="durable")})) == []
