"""Flows: cyclic work next to the jobs, and its workers."""

from typing import Final

from edge.app.feature import DocumentKind, Feature, Noun
from edge.model.event_types import CONFIG_TYPE, FLOW_METHOD_TYPE

FLOW_KIND: Final = "flow"
"""The kind of the configuration event that registers, deletes or reads flows, and of their station files."""
FLOW_METHODS: Final = ("Start", "Stop", "Terminate")

FEATURE = Feature(
    "flows",
    keys="edge.features.flows.keys",
    sections="edge.features.flows.settings:SECTIONS",
    payloads={
        "flow.call": ("edge.features.flows.calls:FlowCall", FLOW_METHOD_TYPE.format("METHOD")),
        "flow.answer": ("edge.features.flows.public_flow:PublicFlow", FLOW_METHOD_TYPE.format("METHOD")),
    },
    documents={
        FLOW_KIND: DocumentKind(
            "flows", "edge.features.flows.keys:flow_schedule", "edge.features.flows.documents:FlowDocuments"
        )
    },
    page="edge.features.flows.page:PAGE",
    options={"check station": "edge.features.flows.cli.stored_flows:kinds_of_files_option"},
    is_on=lambda settings: settings.is_on("flows"),
    prepare="edge.features.flows.service:prepare_flows",
    open="edge.features.flows.service:open_flow_calls",
    serve="edge.features.flows.service:run_flows",
    opcua="edge.features.flows.opcua:add_flows",
    opcua_off="edge.features.flows.opcua:add_types",
    calls=(CONFIG_TYPE.format(FLOW_KIND), *map(FLOW_METHOD_TYPE.format, FLOW_METHODS)),
    switch='Set [flows] run = "on".',
    commands={
        "flows": Noun(
            "edge.features.flows.cli.flows", "Check, try, run and watch flows: cyclic work next to the jobs."
        ),
        "worker": Noun(
            "edge.features.flows.cli.worker",
            "Run a worker: it runs the nodes whose kinds are files of `[flows] nodes` or packages.",
        ),
    },
)
