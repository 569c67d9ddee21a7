"""Opens telemetry as far as the settings switch it on; alarms of other gateways can be answered in any case."""

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works, open_session
from edge.features.telemetry.settings import SourceSettings, TelemetrySettings
from edge.foundation.instant import now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import ALARM_METHOD_TYPE
from edge.northbound.reply import CallEffect, Reply
from edge.ports.alarm import ALARM_METHODS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from edge.features.telemetry.service import TelemetryService
    from edge.uaserver.parts import NewServer, ServerPart


async def open_telemetry(stack: AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Open the queue, the processor and the job actions. Raises SettingsError with every fault of the rules."""
    calls = {ALARM_METHOD_TYPE.format(method): partial(_answer, core, method) for method in ALARM_METHODS}
    if core.settings.section(TelemetrySettings).mode == "off":
        return Opened(calls=calls)
    # Imported only when telemetry is on.
    from edge.app.component import ComponentPart  # noqa: PLC0415
    from edge.features.telemetry import service  # noqa: PLC0415
    from edge.store import kept_alarms as alarms  # noqa: PLC0415

    opened = await service.open_telemetry(stack, core, works)
    works.settings.listeners.extend(opened.of_settings)

    async def describe() -> ComponentPart:
        return ComponentPart({"alarms": await alarms.count(core.store)})

    def serving() -> str:
        sources = core.settings.named(SourceSettings)
        return f"{opened.own_rules} rules, {len(sources)} sources of samples" if opened.own_rules or sources else ""

    return Opened(
        port=opened, calls=calls, metrics=(partial(_metrics, core, opened),), described=(describe,), serving=(serving,)
    )


async def _answer(core: GatewayParts, method: str, event: CloudEvent, _origin: str) -> Reply:
    # Imported only where an alarm is answered.
    from edge.features.telemetry.alarm_requests import call_alarm  # noqa: PLC0415

    notice = await call_alarm(core.store, method, event, now_ms, core.settings.retention.dedupe * 1000)
    return Reply(notice, change=CallEffect(method, notice.alarm_id, notice.comment, notice.by))


async def _metrics(core: GatewayParts, telemetry: "TelemetryService") -> "list[Metric]":
    # Imported only where metrics are read.
    from edge.features.telemetry.metrics import telemetry_metrics  # noqa: PLC0415

    return await telemetry_metrics(telemetry, core.store)


async def serve_telemetry(stack: AsyncExitStack, core: GatewayParts, _works: Works) -> None:
    """Open the sources, and publish alarms where there is a MES."""
    telemetry: TelemetryService | None = core.ports.get("telemetry")
    if telemetry is None:
        return
    # Imported only when telemetry is on.
    from edge.features.telemetry.service import publish_alarms  # noqa: PLC0415
    from edge.features.telemetry.sources.opening import open_sources  # noqa: PLC0415

    await open_sources(stack, core, telemetry.queue, partial(open_session, stack, core))
    if session_of_mes := core.health.sessions.get("MES"):
        await publish_alarms(stack, core, telemetry, session_of_mes)


async def show_to_opcua(core: GatewayParts, new: "NewServer") -> "ServerPart | None":
    """Add alarms and history to an OPC UA server, where telemetry is on. Raises Unavailable."""
    telemetry: TelemetryService | None = core.ports.get("telemetry")
    if telemetry is None:
        return None
    # Imported only when telemetry is on.
    from edge.features.telemetry.opcua.alarm_feed import add_alarms_of_store  # noqa: PLC0415

    return await add_alarms_of_store(core, telemetry, new)
