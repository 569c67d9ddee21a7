"""`edge tags` lists tags and watches their samples."""

import asyncio
import json

import pytest_asyncio

from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.features.telemetry.plant import append

SAMPLES = (Sample(1000, "wrench.torque", 85.2, process="P1"), Sample(2000, "wrench.evaluation", "OK"))


@pytest_asyncio.fixture(autouse=True)
async def saved(store: Store) -> None:
    """Two tags."""
    await store.commit(tags.save_last(store.keys, {sample.tag: encode_line(sample) for sample in SAMPLES}))


async def test_tags_are_listed_by_pattern(edge: Edge) -> None:
    listed = await edge("tags", "list")
    assert all(word in listed.output for word in ("wrench.torque", "85.2", "P1", "wrench.evaluation"))
    (found,) = json.loads((await edge("tags", "list", "*.torque", "--json")).output)
    assert (found["tag"], found["value"], found["unit"]) == ("wrench.torque", 85.2, "")
    assert (await edge("tags", "list", "x*")).output == "no tags\n"


async def test_one_tag_is_shown(edge: Edge) -> None:
    assert "85.2" in (await edge("tags", "show", "wrench.torque")).output
    assert "Did you mean 'wrench.torque'?" in (await edge("tags", "show", "wrench.torqe")).stderr
    assert json.loads((await edge("tags", "show", "wrench.torque", "--json")).output)["process"] == "P1"
    assert (await edge("tags", "show", "x")).exit_code == 1


async def test_samples_are_watched_in_the_form_of_rules_test(edge: Edge, store: Store) -> None:
    watching = asyncio.ensure_future(edge("tags", "watch", "*.torque", "--count", 2, "--json"))
    while not watching.done():
        await append(store, *SAMPLES)
        await asyncio.sleep(0.02)
    lines = (await watching).output.splitlines()
    assert lines == [encode_line(SAMPLES[0])] * 2
