"""What a gateway asks the workbench of recipes, and its answers."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from edge.features.recipes.changes import Change
from edge.features.recipes.difference import RecipeDifference
from edge.features.recipes.past_decisions import PastNames
from edge.features.recipes.public_finding import PublicFinding
from edge.features.recipes.recipe_tests import RecipeTest, RecipeTestResult
from edge.features.recipes.trial import TrialDecisions
from edge.foundation.text import ENGLISH, Text
from edge.model.recipe import Action
from edge.store.archive_backlog import JobDocuments

MEMBER_CHANGED: Final = "member_changed"
"""The kind of a refusal: a change would take back that of another person."""


class RecipeProblem(Struct, frozen=True, kw_only=True):
    """Why a text is not a recipe that can run; `element` is its list and `number` its place there, counted from 0.

    Line and column are those of the element in the text, None where the whole text is meant.
    """

    message: str
    element: str = ""
    number: int | None = None
    line: int | None = None
    column: int | None = None


class DraftView(Struct, frozen=True, kw_only=True):
    """A text as people see it: `recipe` is None while it is not JSON, `chart` is empty while it cannot be drawn."""

    text: str
    recipe: Any
    problems: tuple[RecipeProblem, ...]
    warnings: tuple[str, ...]
    chart: str


class DraftCheck(Struct, frozen=True, kw_only=True):
    """What forbids the release of a text, and what its author should know; see `edge check recipe`.

    With `bounded` the recipe has more states than the check explores.
    """

    problems: tuple[RecipeProblem, ...]
    warnings: tuple[str, ...] = ()
    findings: tuple[PublicFinding, ...] = ()
    bounded: bool = False


class RecipeComparison(Struct, frozen=True, kw_only=True):
    """The differences of two recipes for programs, and in words."""

    differences: tuple[RecipeDifference, ...]
    words: tuple[str, ...]


class RefusedRequest(Struct, frozen=True):
    """Why a request is not possible; its members are those of `Refused`."""

    kind: str
    reason: Text
    advice: Text = Text("")


class EncodedAnswer(Struct, frozen=True):
    """The answer of the program: one of both."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    refusal: RefusedRequest | None = None


class ViewText(Struct, frozen=True, tag="view"):
    """Look at a text; in a file of PLCopen XML at a chart by its name, where it has several."""

    text: str
    pou: str = ""
    language: str = ENGLISH


class EditText(Struct, frozen=True, tag="edit"):
    """Look at a text after a change; `seen` is the change that would leave the element as its author saw it."""

    text: str
    change: Change
    seen: Change | None = None
    language: str = ENGLISH


class CheckText(Struct, frozen=True, tag="check"):
    """Check a text; `types` are those of the commands and events that the equipment of the station takes."""

    text: str
    language: str = ENGLISH
    types: tuple[str, ...] = ()


class CompareTexts(Struct, frozen=True, tag="compare"):
    """Compare two texts."""

    old: str
    new: str
    language: str = ENGLISH


class RunTests(Struct, frozen=True, tag="test"):
    """Run tests with a text."""

    text: str
    tests: tuple[RecipeTest, ...]
    language: str = ENGLISH


class RecipeTestReport(Struct, frozen=True, kw_only=True):
    """The results of the tests of a recipe, in their order."""

    results: tuple[RecipeTestResult, ...]


class ExportText(Struct, frozen=True, tag="export"):
    """Write a text as PLCopen XML with a name, created at an instant (xsd:dateTime)."""

    text: str
    name: str
    created: str


class RecipeFile(Struct, frozen=True):
    """A recipe as a file of another tool."""

    content: str


class TryText(Struct, frozen=True, tag="try"):
    """Try a text in virtual time with some decisions."""

    text: str
    decisions: TrialDecisions
    language: str = ENGLISH


class DrawActive(Struct, frozen=True, tag="draw"):
    """Draw a text with some steps marked as active."""

    text: str
    active: tuple[str, ...]


class DrawComparison(Struct, frozen=True, tag="draw_comparison"):
    """Draw two texts as one chart."""

    old: str
    new: str
    language: str = ENGLISH


class DrawnChart(Struct, frozen=True):
    """A chart as SVG, empty where it cannot be drawn."""

    svg: str


class ReplayJob(Struct, frozen=True, tag="replay"):
    """Repeat the decisions of a past job with a text."""

    text: str
    job_id: str
    documents: JobDocuments
    language: str = ENGLISH


class EvaluateCondition(Struct, frozen=True, tag="evaluate"):
    """Evaluate a condition in a past job while a step was active."""

    condition: str
    step: str
    job_id: str
    documents: JobDocuments


class ReadCondition(Struct, frozen=True, tag="condition"):
    """Read a condition with the names of a text."""

    text: str
    condition: str
    language: str = ENGLISH


class ConditionFault(Struct, frozen=True, kw_only=True):
    """Why a condition cannot be read with the names of a draft; empty where it can."""

    fault: str


class ListActions(Struct, frozen=True, tag="actions"):
    """List the actions of recipes (decoded JSON); one that cannot be read has none."""

    recipes: tuple[Any, ...]


class ListedActions(Struct, frozen=True):
    """The actions of recipes in their order."""

    actions: tuple[Action, ...]


class NameJob(Struct, frozen=True, tag="name job"):
    """Return the values that a past job had; the documents need no decisions."""

    documents: JobDocuments


class OfferNames(Struct, frozen=True, tag="names"):
    """Name what conditions of a text may ask for."""

    text: str
    past: PastNames
    parameters: tuple[str, ...]
    mirrors: tuple[str, ...]


PastRequest: TypeAlias = ReplayJob | EvaluateCondition | NameJob | OfferNames
"""What concerns past jobs."""
LongRequest: TypeAlias = PastRequest | CheckText | RunTests | TryText | DrawComparison
"""What may take long; edits do not wait for it."""
Request: TypeAlias = (
    ViewText | EditText | CompareTexts | ExportText | DrawActive | ReadCondition | ListActions | LongRequest
)


def is_xml(text: str) -> bool:
    """Return whether a text is meant as a file of PLCopen XML."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def text_of(data: object) -> str:
    """Return a recipe as the text of a draft: JSON, indented by two."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
