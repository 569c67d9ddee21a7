"""What jobs show whose documents are gone or damaged: nothing, with the reason."""

import pytest

from edge.features.recipes.past_decisions import (
    condition_value,
    merged_names,
    names_of_job,
    offered_names,
    replay_of,
    replayed_job,
)
from edge.model.recipe import parse_recipe
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.store.archive_backlog import JobDocuments
from tests.features.recipes.test_past_jobs import FIT

GONE = JobDocuments({}, {}, {}, ())
DAMAGED = JobDocuments({}, {}, {"recipe": "x"}, ())


def test_names_are_those_of_parameters_and_mirrors() -> None:
    draft, _ = parse_recipe(FIT)
    assert draft is not None
    names = {
        item.name
        for item in offered_names(draft, merged_names(map(names_of_job, [GONE, DAMAGED])), ["vin"], ["carriers"]).names
    }
    assert {"vin", "job.parameters.vin", "mirrors.carriers", "mirrors.carriers.stale"} <= names
    assert condition_value("J9", GONE, "true", "") is None


@pytest.mark.parametrize(("documents", "reason"), [(None, "is gone"), (GONE, "never started"), (DAMAGED, "be read")])
def test_job_without_decisions_is_not_replayed(documents: JobDocuments | None, reason: str) -> None:
    net = compile_recipe(FIT)
    assert isinstance(net, Net)
    job = replayed_job("J1", documents, net, "en")
    assert reason in job.reason
    assert (replay_of([job], 1).not_replayed, replay_of([job], 1).same) == (1, 0)
