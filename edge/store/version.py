"""The version of each kind of stored document: written with it; an older document is upgraded when it is read."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from edge.foundation.errors import EdgeError
from edge.foundation.text import Text

FIELD = "_version"
"""The field that holds the version of a document; a document without it has version 1."""


class DocumentTooNew(EdgeError):
    """A document that only a newer release of this software can read; the others are not affected."""


class Document(StrEnum):
    """The kinds of documents."""

    JOB_ORDER = "job order"
    JOB_RESPONSE = "job response"
    WORK_MASTER = "work master"
    RUN = "run"


Fields = Mapping[str, str]
Upgrade = Callable[[Fields], Fields]
"""Returns the fields of the next version; runs at each read until the document changes and is written whole."""


def _relative_paths(fields: Fields) -> Fields:
    """Return a job response (1 → 2) whose BrowsePath is a RelativePath instead of a list of names."""
    response = msgspec.json.decode(fields["response"])
    for state in response.get("JobState", ()):
        names = state.pop("BrowsePath", None)
        if isinstance(names, list) and names:
            state["BrowsePath"] = {
                "Elements": [
                    {
                        "ReferenceTypeId": "i=47",
                        "IncludeSubtypes": True,
                        "TargetName": f"nsu={name.get('NamespaceUri', '')};{name['Name']}",
                    }
                    for name in names
                ]
            }
    return {**fields, "response": msgspec.json.encode(response).decode()}


def _content_per_scope(fields: Fields) -> Fields:
    """Return a work master (1 → 2) that holds its content for each scope that lists it."""
    content = fields["work_master"]
    return {name: content if name.startswith("scope:") and not value else value for name, value in fields.items()}


_STEP = {"activated_at": 0, "count": 0, "active": False, "elapsed_ms": 0, "held_ms": 0}
_ASSOCIATION = {
    "state": "pending",
    "attempt": 0,
    "armed_at": None,
    "ended_at": None,
    "result": None,
    "deadline": None,
    "due": None,
    "error": None,
    "reset": False,
    "type_id": "",
    "event_id": "",
    "begun": "",
    "resolved_by": "",
}


def _arrays(fields: Fields) -> Fields:
    """Return a run (1 → 2) whose steps and associations are arrays instead of objects."""
    defaults: Mapping[str, Mapping[str, object]] = {"step": _STEP, "action": _ASSOCIATION}
    found = dict(fields)
    for name, text in fields.items():
        members = defaults.get(name.partition(":")[0])
        if members is not None:
            known = msgspec.json.decode(text)
            found[name] = msgspec.json.encode([known.get(member, value) for member, value in members.items()]).decode()
    return found


def _relative_instants(fields: Fields) -> Fields:
    """Return a run (2 → 3) whose steps and associations count their instants from its start."""
    since = msgspec.json.decode(fields["state"]).get("started_at") or 0
    found = dict(fields)
    for name, text in fields.items():
        places = _INSTANTS.get(name.partition(":")[0])
        if places and since:
            row = msgspec.json.decode(text)
            moved = [value - since if at in places and value is not None else value for at, value in enumerate(row)]
            found[name] = msgspec.json.encode(moved).decode()
    return found


_INSTANTS: Mapping[str, Collection[int]] = {"step": (0,), "action": (2, 3, 5, 6)}
"""The members of a step and of an action that were instants in version 2."""


def _unchanged(fields: Fields) -> Fields:
    """Return a document as it is, where both forms are read.

    A job response has `attempts` (3) and `state` (4); the errors of a run (4) are a string or a Text.
    """
    return fields


UPGRADES: Mapping[Document, tuple[Upgrade, ...]] = MappingProxyType(
    {
        Document.JOB_ORDER: (),
        Document.JOB_RESPONSE: (_relative_paths, _unchanged, _unchanged),
        Document.WORK_MASTER: (_content_per_scope,),
        Document.RUN: (_arrays, _relative_instants, _unchanged),
    }
)
"""The first upgrade leads from version 1 to 2, each other one to the next. An upgrade is never removed or changed."""


def current_version(document: Document, upgrades: Mapping[Document, tuple[Upgrade, ...]] = UPGRADES) -> int:
    """Return the version that this release writes."""
    return len(upgrades[document]) + 1


def upgrade_fields(
    document: Document, fields: Fields, upgrades: Mapping[Document, tuple[Upgrade, ...]] = UPGRADES
) -> Fields:
    """Return the fields of a document in the version that this release writes.

    Raises TooNew for a version that only a newer release of this software knows.
    """
    found, ours = int(fields.get(FIELD, 1)), current_version(document, upgrades)
    if found > ours:
        raise too_new_error(document, found, ours)
    for upgrade in upgrades[document][found - 1 :]:
        fields = upgrade(fields)
    return {**fields, FIELD: str(ours)} if found < ours else fields


def is_outdated(document: Document, fields: Fields) -> bool:
    """Return whether a document that was read must be written as a whole when it changes."""
    return int(fields.get(FIELD, 1)) < current_version(document)


def too_new_error(document: str, found: int, ours: int) -> DocumentTooNew:
    """Return the error for an unknown version."""
    message = Text.of(
        "the store holds a {document} of version {found}; this release knows versions up to {ours}",
        document=document,
        found=found,
        ours=ours,
    )
    return DocumentTooNew(message, "Install the newer release of microdcs-edge again, or set another [redis] prefix.")
