"""Flows: cyclic work next to the jobs, and its workers."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "flows",
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
