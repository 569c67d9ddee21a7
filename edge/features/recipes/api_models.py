"""The data of the HTTP API about revisions and drafts of recipes."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from edge.expression.syntax import MAX_LENGTH
from edge.features.recipes.changes import Change
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.recipe_tests import RecipeTest
from edge.features.recipes.revisions import RevisionLine
from edge.features.recipes.workbench_requests import RecipeProblem
from edge.model.instant import rfc3339

_Id = Annotated[str, Meta(min_length=1, max_length=255)]
_Version = Annotated[int, Meta(ge=1, description="The version of the draft that its author has seen.")]
_Reason = Annotated[str, Meta(min_length=1, max_length=1000)]


class PublicRevision(Struct, frozen=True, kw_only=True):
    """A revision of a recipe.

    `hash` names its content in job responses and OPC UA; `source` is `mes`, `command`, `page` or `station_file`.
    `draft` is the id of the draft that it was, where it was one.
    """

    number: int
    hash: str
    released_at: str | None
    source: str
    author: str
    reason: str
    confirmed_by: str
    draft: str


class ReleasedRecipe(Struct, frozen=True, kw_only=True):
    """A recipe of a scope with its released revision, None for one that an earlier release of this program stored.

    `drafts` are the ids of its drafts.
    """

    scope: str
    work_master: str
    description: str
    revision: PublicRevision | None
    drafts: tuple[str, ...]


class ReleasedRecipeList(Struct, frozen=True, kw_only=True):
    """The recipes of the scopes of this gateway."""

    recipes: tuple[ReleasedRecipe, ...]


class RevisionList(Struct, frozen=True, kw_only=True):
    """The revisions that are kept of a Work Master, the released one first."""

    scope: str
    work_master: str
    revisions: tuple[PublicRevision, ...]


class RevisionDetail(Struct, frozen=True, kw_only=True):
    """A revision with its recipe."""

    scope: str
    work_master: str
    revision: PublicRevision
    recipe: Any


class PublicVersion(Struct, frozen=True, kw_only=True):
    """A version of a draft: `change` is what made it, such as `insert_after` or `text`."""

    number: int
    at: str | None
    author: str
    change: str


class PublicPendingRelease(Struct, frozen=True, kw_only=True):
    """A release that awaits a second person."""

    version: int
    at: str | None
    by: str
    reason: str


class PublicDraft(Struct, frozen=True, kw_only=True):
    """A draft. `base` is the revision with which it began, 0 for none; `current` is the version that is shown."""

    id: str
    scope: str
    work_master: str
    base: int
    author: str
    created_at: str | None
    changed_by: str
    changed_at: str | None
    current: int
    can_undo: bool
    can_redo: bool
    versions: tuple[PublicVersion, ...]
    request: PublicPendingRelease | None


class PublicDraftList(Struct, frozen=True, kw_only=True):
    """The drafts of the scopes of this gateway, the oldest first; `second_person` says whether two persons release."""

    drafts: tuple[PublicDraft, ...]
    second_person: bool


class DraftDetail(Struct, frozen=True, kw_only=True):
    """A draft with its text.

    `recipe` is null while the text is not JSON, `chart` (SVG) is empty while it cannot be drawn; `problems` say why,
    with their places.
    """

    draft: PublicDraft
    text: str
    recipe: Any
    problems: tuple[RecipeProblem, ...]
    warnings: tuple[str, ...]
    chart: str


class RecipeTestList(Struct, frozen=True, kw_only=True):
    """The tests of recipes, by their ids."""

    tests: tuple[RecipeTest, ...]


class RecipeTestName(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The id of a test."""

    id: _Id


class ConditionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition, and the step that it leaves; without a step its value at the last decision is meant."""

    condition: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTH)]
    step: Annotated[str, Meta(max_length=255)] = ""


class ReleaseResult(Struct, frozen=True, kw_only=True):
    """A release: its revision, or the draft that awaits a second person."""

    revision: PublicRevision | None
    draft: PublicDraft | None


class NewDraft(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft to begin: with a text, else with a revision, by default the released one.

    A text may be a file of PLCopen XML; `pou` names the chart where it has several.
    """

    scope: _Id
    work_master: _Id
    revision: Annotated[int, Meta(ge=1)] | None = None
    text: str | None = None
    pou: Annotated[str, Meta(max_length=255)] = ""


class DraftChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a draft; `change` of it is its kind, such as `insert_after`.

    `seen` is the change of that kind that would leave the element as its author saw it: where another person has set
    a member otherwise meanwhile, the change is refused as `draft_changed`.
    """

    version: _Version
    change: Change
    seen: Change | None = None


class DraftText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text in place of that of a draft; it may have faults."""

    version: _Version
    text: str


class DraftSeen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version of a draft that its author has seen."""

    version: _Version


class DraftBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The released revision with which an author has compared a draft."""

    version: _Version
    revision: Annotated[int, Meta(ge=0)]


class DraftRelease(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The release of a version of a draft, and why."""

    version: _Version
    reason: _Reason


class RollbackBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The revision to release again, and why."""

    revision: Annotated[int, Meta(ge=1)]
    reason: _Reason


def public_revision(revision: RevisionLine) -> PublicRevision:
    """Return a revision as commands and the HTTP API show it."""
    return PublicRevision(
        number=revision.number,
        hash=revision.hash,
        released_at=rfc3339(revision.at),
        source=revision.source.value,
        author=revision.author,
        reason=revision.reason,
        confirmed_by=revision.confirmed_by,
        draft=revision.draft,
    )


def public_draft(draft: RecipeDraft) -> PublicDraft:
    """Return a draft as commands and the HTTP API show it."""
    request = draft.request
    return PublicDraft(
        id=draft.id,
        scope=draft.scope,
        work_master=draft.work_master,
        base=draft.base,
        author=draft.author,
        created_at=rfc3339(draft.created_at),
        changed_by=draft.changed_by,
        changed_at=rfc3339(draft.changed_at),
        current=draft.current,
        can_undo=draft.place > 0,
        can_redo=draft.place + 1 < len(draft.versions),
        versions=tuple(
            PublicVersion(number=item.number, at=rfc3339(item.at), author=item.author, change=item.change)
            for item in draft.versions
        ),
        request=PublicPendingRelease(
            version=request.version, at=rfc3339(request.at), by=request.by, reason=request.reason
        )
        if request
        else None,
    )


def drafts_by_recipe(drafts: Mapping[str, RecipeDraft]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the ids of drafts by scope and Work Master."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for draft_id, draft in drafts.items():
        place = (draft.scope, draft.work_master)
        found[place] = (*found.get(place, ()), draft_id)
    return found
