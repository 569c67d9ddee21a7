"""Opens telemetry: its port, its metrics, the sources of samples, and the alarms for the MES."""

from contextlib import AsyncExitStack
from functools import partial

from edge.app.component import ComponentPart
from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.telemetry.calls import alarm_calls
from edge.features.telemetry.metrics import telemetry_metrics
from edge.features.telemetry.parts import TelemetryService, open_parts, publish_alarms
from edge.features.telemetry.settings import SourceSettings
from edge.features.telemetry.sources.open_sources import open_sources
from edge.store import kept_alarms as alarms


async def open_telemetry(stack: AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Open the queue, the processor and the job actions. Raises SettingsError with every fault of the rules."""
    opened = await open_parts(stack, core, works)
    works.settings.listeners.extend(opened.of_settings)

    async def describe() -> ComponentPart:
        return ComponentPart({"alarms": await alarms.count(core.store)})

    def serving() -> str:
        sources = core.settings.named(SourceSettings)
        return f"{opened.own_rules} rules, {len(sources)} sources of samples" if opened.own_rules or sources else ""

    return Opened(
        port=opened,
        calls=alarm_calls(core),
        metrics=(partial(telemetry_metrics, opened, core.store),),
        described=(describe,),
        serving=(serving,),
    )


async def serve_telemetry(stack: AsyncExitStack, core: GatewayParts, _works: Works) -> None:
    """Open the sources, and publish alarms where there is a MES."""
    telemetry: TelemetryService = core.ports["telemetry"]
    await open_sources(stack, core, telemetry.queue)
    if session_of_mes := core.health.sessions.get("MES"):
        await publish_alarms(stack, core, telemetry, session_of_mes)
