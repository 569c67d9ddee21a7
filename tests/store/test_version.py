"""Documents of earlier versions are read; documents of a newer version are refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from edge.model.isa95 import JobResponse, WorkMaster
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState
from edge.sfc.signal import Advanced, Resume
from edge.store import jobs, resources, responses, runs, version
from edge.store.client import Store
from edge.store.commit import Committed
from edge.store.version import FIELD, Document, DocumentTooNew, Upgrade
from tests.store.work_masters import work_master

DOCUMENTS = Path(__file__).parent / "documents"
SCOPE = "station-1"
NOW = 1_700_000_000_000


async def stored(store: Store, name: str) -> dict[str, dict[str, str]]:
    """Put the documents of a release in the store, as they stood there."""
    documents: dict[str, dict[str, str]] = json.loads((DOCUMENTS / name).read_text(encoding="utf-8"))
    for key, fields in documents.items():
        flat = [text for pair in fields.items() for text in pair]
        await store.execute("HSET", f"{store.keys.prefix}:{key}", *flat)
    return documents


@pytest.mark.parametrize("name", [f"version-{number}.json" for number in range(1, 5)])
async def test_documents_of_each_version_are_read_whole(store: Store, name: str) -> None:
    await stored(store, name)
    paused = await jobs.load(store, "J1")
    assert paused
    assert paused.status == JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED)
    assert (paused.order.priority, paused.earliest_start, paused.revision) == (7, NOW - 800_000, 3)
    run = await runs.load(store, "J1")
    assert run
    assert run.run.associations[AssociationKey("a", "one")].state is ActionState.COMPLETED
    assert run.run.paused
    assert run.run.steps["one"].activated_at == NOW
    assert run.run.associations[AssociationKey("a", "one")].ended_at == NOW
    assert run.run.associations[AssociationKey("b", "two")].due == NOW + 5000
    failed = await jobs.load(store, "J2")
    assert failed
    response = await responses.load(store, failed)
    assert response
    assert response.description
    assert response.description.text == str(failed.error)
    assert [state.state_text.text for state in response.job_state] == ["Aborted"]
    master = await work_master(store, "linear")
    assert master
    assert master.id == "linear"


async def test_a_document_of_the_first_version_can_be_changed(store: Store) -> None:
    await stored(store, "version-1.json")
    job = await jobs.load(store, "J3")
    assert job
    moved = msgspec.structs.replace(job, status=JobStatus(JobState.ABORTED), revision=job.revision + 1)
    await store.commit(jobs.save(store.keys, job, moved, ((Cause.ABORT, moved.status),), NOW))
    assert await jobs.load(store, "J3") == moved


async def test_a_document_of_a_newer_version_is_refused_by_name(store: Store) -> None:
    await stored(store, "version-1.json")
    keys = store.keys
    failed = await jobs.load(store, "J2")
    assert failed
    response = keys.jobresponse(failed.correlation_id)
    for key in (keys.joborder("J2"), keys.sfc_execution("J2"), keys.workmaster("linear"), response):
        await store.execute("HSET", key, FIELD, 99)
    for reading, what, known in (
        (jobs.load(store, "J2"), "job order", 1),
        (runs.load(store, "J2"), "run", 4),
        (work_master(store, "linear"), "work master", 2),
        (responses.load(store, failed), "job response", 4),
    ):
        with pytest.raises(DocumentTooNew, match=f"{what} of version 99; this release knows versions up to {known}"):
            await reading


async def test_written_documents_contain_their_version(store: Store) -> None:
    await stored(store, "version-1.json")
    job, run = await jobs.load(store, "J1"), await runs.load(store, "J1")
    assert job
    assert run
    keys = store.keys
    new = msgspec.structs.replace(job, order=msgspec.structs.replace(job.order, job_order_id="new"))
    await store.commit(jobs.save(keys, None, new, (), NOW))
    await store.commit(responses.save(keys, new, JobResponse(job_response_id="new", job_order_id="new")))
    await store.commit(runs.create(keys, run, "edge"))
    await store.commit(resources.save_work_master(keys, SCOPE, WorkMaster(id="new")))
    assert await store.execute("HGET", keys.joborder("new"), FIELD) == "1"
    for key, expected in (
        (keys.jobresponse("new"), "4"),
        (keys.workmaster("new"), "2"),
        (keys.sfc_execution("J1"), "4"),
    ):
        assert await store.execute("HGET", key, FIELD) == expected


def test_a_stored_response_gets_relative_paths() -> None:
    namespace = "http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/"
    sub_state = {
        "StateText": {"Text": "Closed"},
        "StateNumber": 2,
        "BrowsePath": [{"Name": "EndedSubstates", "NamespaceUri": namespace}],
    }
    stored_response = {"JobResponseID": "r", "JobOrderID": "J1", "JobState": [{"StateNumber": 5}, sub_state]}
    fields = version.upgrade_fields(Document.JOB_RESPONSE, {"response": json.dumps(stored_response)})
    path = json.loads(fields["response"])["JobState"][1]["BrowsePath"]
    assert path["Elements"][0]["TargetName"] == f"nsu={namespace};EndedSubstates"
    assert fields[FIELD] == "4"


async def test_a_stored_work_master_keeps_its_content_per_scope(store: Store) -> None:
    await stored(store, "version-1.json")
    before = await work_master(store, "linear", SCOPE)
    assert before
    other = WorkMaster(id="linear", dataschema="urn:other")
    await store.commit(resources.save_work_master(store.keys, "station-2", other))
    assert await work_master(store, "linear", SCOPE) == before
    assert await work_master(store, "linear", "station-2") == other


def renamed(fields: Mapping[str, str]) -> Mapping[str, str]:
    return {("new" if name == "old" else name): text for name, text in fields.items()}


def doubled(fields: Mapping[str, str]) -> Mapping[str, str]:
    return {**fields, "new": fields["new"] * 2}


TWO: Mapping[Document, tuple[Upgrade, ...]] = dict.fromkeys(Document, (renamed, doubled))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"old": "x"}, {"new": "xx", FIELD: "3"}),
        ({"old": "x", FIELD: "1"}, {"new": "xx", FIELD: "3"}),
        ({"new": "x", FIELD: "2"}, {"new": "xx", FIELD: "3"}),
        ({"new": "x", FIELD: "3"}, {"new": "x", FIELD: "3"}),
    ],
)
def test_each_upgrade_leads_to_the_next_version(fields: dict[str, str], expected: dict[str, str]) -> None:
    before = dict(fields)
    assert version.upgrade_fields(Document.RUN, fields, TWO) == expected
    assert fields == before


def test_every_document_version_has_a_fixture() -> None:
    newest = max(version.current_version(document) for document in Document)
    assert {file.name for file in DOCUMENTS.iterdir()} == {f"version-{number}.json" for number in range(1, newest + 1)}


async def test_run_of_the_first_version_continues_in_the_current_one(store: Store) -> None:
    """A gateway is upgraded in mid-job: the next decision writes the whole run in the new form."""
    await stored(store, "version-1.json")
    before = await runs.load(store, "J1")
    assert before
    assert before.outdated
    net = compile_recipe(json.loads(before.recipe))
    assert isinstance(net, Net)
    resumed = advance(net, before.run, Resume(), NOW + 100)
    assert isinstance(resumed, Advanced)
    after = msgspec.structs.replace(before, run=resumed.run, revision=before.revision + 1, outdated=False)
    assert await store.commit(runs.update(store.keys, before, after, "edge")) == Committed()
    fields = await store.execute("HGETALL", store.keys.sfc_execution("J1"))
    assert all(text.startswith("[") for name, text in fields.items() if name.startswith(("step:", "action:")))
    loaded = await runs.load(store, "J1")
    assert loaded
    assert not loaded.outdated
    assert (loaded.run.steps, loaded.run.associations) == (resumed.run.steps, resumed.run.associations)
    assert loaded.recipe == before.recipe
