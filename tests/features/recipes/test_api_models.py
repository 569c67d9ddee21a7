"""The public forms of revisions and drafts."""

from edge.features.recipes.api_models import drafts_by_recipe, public_draft, public_revision
from edge.features.recipes.drafts import DraftVersion, PendingRelease, RecipeDraft
from edge.features.recipes.revisions import RevisionLine
from edge.station.settings import SettingSource

VERSIONS = tuple(DraftVersion(number=number, at=0, author="anna", change="text", size=1) for number in (1, 4, 6))
DRAFT = RecipeDraft(
    id="d",
    scope="s",
    work_master="WM",
    base=3,
    created_at=0,
    author="anna",
    versions=VERSIONS,
    current=4,
    saves=7,
    changed_at=0,
    changed_by="ben",
    request=PendingRelease(version=4, at=0, by="ben", reason="why"),
)


def test_draft_shows_whether_it_can_be_undone_and_redone() -> None:
    shown = public_draft(DRAFT)
    assert (shown.can_undo, shown.can_redo, shown.base, shown.changed_by) == (True, True, 3, "ben")
    assert shown.request is not None
    assert (shown.request.by, shown.request.at) == ("ben", "1970-01-01T00:00:00.000Z")


def test_revision_has_the_instant_of_its_release() -> None:
    line = RevisionLine(number=2, at=1000, source=SettingSource.MES, author="", reason="", hash="0" * 12)
    assert (public_revision(line).released_at, public_revision(line).source) == ("1970-01-01T00:00:01.000Z", "mes")


def test_drafts_are_found_by_their_recipe() -> None:
    assert drafts_by_recipe({"d": DRAFT, "e": DRAFT}) == {("s", "WM"): ("d", "e")}
