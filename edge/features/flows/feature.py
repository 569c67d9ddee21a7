"""Flows: cyclic work next to the jobs, and its workers."""

from edge.app.feature import Feature, Noun
from edge.features.flows.calls import FLOW_KIND, FLOW_METHODS
from edge.model.event_types import CONFIG_TYPE, FLOW_METHOD_TYPE

FEATURE = Feature(
    "flows",
    sections="edge.features.flows.settings:SECTIONS",
    payloads={"flow.call": ("edge.features.flows.calls:FlowCall", FLOW_METHOD_TYPE.format("METHOD"))},
    is_on=lambda settings: settings.is_on("flows"),
    prepare="edge.features.flows.service:prepare_flows",
    open="edge.features.flows.service:open_flow_calls",
    serve="edge.features.flows.service:run_flows",
    opcua="edge.features.flows.opcua_nodes:add_flows",
    calls=(CONFIG_TYPE.format(FLOW_KIND), *map(FLOW_METHOD_TYPE.format, FLOW_METHODS)),
    switch='Set [flows] run = "on".',
    commands={
        "flows": Noun(
            "edge.features.flows.cli.commands", "Check, try, run and watch flows: cyclic work next to the jobs."
        ),
        "worker": Noun(
            "edge.features.flows.cli.worker",
            "Run a worker: it runs the nodes whose kinds are files of `[flows] nodes` or packages.",
        ),
    },
)
