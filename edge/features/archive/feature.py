"""The archive of results."""

from edge.app.feature import Feature, Noun
from edge.model.event_types import RESULTS_METHOD_TYPE

FEATURE = Feature(
    "archive",
    sections="edge.features.archive.settings:SECTIONS",
    checks="edge.features.archive.checks:checks",
    is_on=lambda settings: settings.is_on("archive"),
    payloads={
        "results.call": ("edge.features.archive.calls:ResultsCall", RESULTS_METHOD_TYPE.format("METHOD")),
        "results.answer": ("edge.features.archive.calls:ResultsAnswer", RESULTS_METHOD_TYPE.format("METHOD")),
    },
    calls=(RESULTS_METHOD_TYPE.format("Find"),),
    switch="Set [archive] directory.",
    archived_runs="edge.features.archive.search:newest_runs",
    page="edge.features.archive.page:PAGE",
    open="edge.features.archive.service:open_archive",
    open_off="edge.features.archive.withdrawal:close_archive",
    commands={
        "results": Noun(
            "edge.features.archive.commands", "Find, show and export ended jobs of the archive, months back."
        )
    },
)
