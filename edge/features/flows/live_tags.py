"""Opens tags and alarms for flows, and has the samples recorded that flows read."""

import contextlib
from functools import partial

from edge.app.parts import GatewayParts
from edge.features.flows.nodes.act import RaiseAlarm, WriteTag
from edge.features.flows.nodes.read import LatestValue, SampleWindow
from edge.features.flows.nodes.tag_latest import TagLatestConfig
from edge.features.flows.nodes.tag_window import TagWindowConfig
from edge.features.flows.nodes.tag_write import TagWriteConfig
from edge.features.flows.plan import Plan, Plans
from edge.features.flows.ports.alarm import AlarmRaiser
from edge.features.flows.ports.table import Handler
from edge.features.flows.ports.tags import TagReader, TagWriter
from edge.features.flows.state import FlowState
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.instant import now_ms
from edge.store.background import restart_on_outage
from edge.store.client import Store


def used_tags(plan: Plan) -> frozenset[str]:
    """Return the tags of the nodes of a plan."""
    configs = (node.config for node in plan.nodes.values())
    return frozenset(
        config.tag for config in configs if isinstance(config, TagLatestConfig | TagWindowConfig | TagWriteConfig)
    )


async def tag_handlers(
    stack: contextlib.AsyncExitStack, core: GatewayParts, volatile: Store | None
) -> dict[type, Handler]:
    """Return the handlers of tags and alarms; the samples of windows are kept in memory from now on.

    Samples of sources are in the `volatile` store where there is one, job results always in the other.
    """
    reader = TagReader([core.store, volatile] if volatile else [core.store])
    await core.keep_running(stack, "tag windows", partial(restart_on_outage, "tag windows", reader.follow))
    writer = TagWriter(volatile or core.store, now_ms, core.settings.section(TelemetrySettings).stream_length)
    return {
        LatestValue: reader.read,
        SampleWindow: reader.read,
        WriteTag: writer.write,
        RaiseAlarm: AlarmRaiser(core.store, now_ms).raise_alarm,
    }


async def record_tags(state: FlowState, plans: Plans, interest: RuleInterest) -> None:
    """Keep the tags that flows use recorded, until cancelled."""
    await restart_on_outage("tags of flows", partial(_follow, state, plans, interest))


async def _follow(state: FlowState, plans: Plans, interest: RuleInterest) -> None:
    position, changed = await state.announced("")
    interest.tags_of_flows = await _load(state, plans)
    while True:
        position, changed = await state.announced(position)
        if changed:
            interest.tags_of_flows = await _load(state, plans)


async def _load(state: FlowState, plans: Plans) -> frozenset[str]:
    found: set[str] = set()
    for flow_id in await state.flow_ids():
        flow = await state.load_flow(flow_id)
        plan = plans.of(flow.document) if flow else None
        if isinstance(plan, Plan):
            found |= used_tags(plan)
    return frozenset(found)
