"""What the work on drafts computes: texts are read, edited, drawn, checked and compared, all without I/O.

As a program, `python -m edge.features.recipes.workbench`, it answers a gateway, whose jobs no check must slow.
"""

from __future__ import annotations

import codecs
import functools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import recipe_checks, result_members
from edge.app.recipe_process import serve
from edge.drawing.draft_chart import draft_drawing, draft_svg
from edge.drawing.svg import editor_svg
from edge.expression.syntax import ExpressionSyntaxError
from edge.features.recipes.changes import Change
from edge.features.recipes.chart_reading import ALWAYS
from edge.features.recipes.check import check_net
from edge.features.recipes.comparison import comparison_svg
from edge.features.recipes.difference import DifferenceKind, RecipeDifference, differences
from edge.features.recipes.edits import EditRefused, edit
from edge.features.recipes.finding import ElementType
from edge.features.recipes.meanwhile import changed_meanwhile
from edge.features.recipes.past_decisions import (
    ConditionValues,
    condition_value,
    names_of_job,
    offered_names,
    replayed_job,
)
from edge.features.recipes.plcopen.finding import PlcFinding
from edge.features.recipes.plcopen.reader import import_plcopen
from edge.features.recipes.plcopen.writer import export_plcopen
from edge.features.recipes.positions import NO_POSITIONS, Positions, positions_of
from edge.features.recipes.public_finding import public_findings
from edge.features.recipes.recipe_tests import run_test
from edge.features.recipes.trial import tried
from edge.features.recipes.workbench_requests import (
    MEMBER_CHANGED,
    CheckText,
    CompareTexts,
    ConditionFault,
    DraftCheck,
    DraftView,
    DrawActive,
    DrawComparison,
    DrawnChart,
    EditText,
    EncodedAnswer,
    EvaluateCondition,
    ExportText,
    ListActions,
    ListedActions,
    NameJob,
    OfferNames,
    ReadCondition,
    RecipeComparison,
    RecipeFile,
    RecipeProblem,
    RecipeTestReport,
    RefusedRequest,
    ReplayJob,
    Request,
    RunTests,
    TryText,
    ViewText,
    is_xml,
    text_of,
)
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text, join_texts
from edge.model.json_value import read_json_text
from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.condition import Names, compile_condition
from edge.sfc.net import Net

_T = TypeVar("_T", bound=Struct)
_NICE: Final = 10
_MOST_FAULTS: Final = 20
_PLACE: Final = re.compile(r"(step|transition|action)s\[(\d+)\]")
_ENCODING: Final = re.compile(r"""(<\?xml\s[^>]*?)\s+encoding\s*=\s*(?:"[^"]*"|'[^']*')""")
_MOST_DECLARED: Final = 200
"""The characters in which the declaration of XML stands: the pattern above takes their square in time."""
_JSON_PLACE: Final = re.compile(r"line (\d+) column (\d+)")


def view(text: str, pou: str = "", language: str = ENGLISH) -> DraftView:
    """Return a text with its chart and its faults, in a language.

    A chart of a PLC without faults is returned as the recipe that it becomes.
    """
    if is_xml(text):
        return _imported(text, pou, language)
    try:
        data = read_json_text(text.encode())
    except Refused as refused:
        return DraftView(text=text, recipe=None, problems=(_of_json(refused, language),), warnings=(), chart="")
    net = compile_recipe(data, checks=recipe_checks())
    if isinstance(net, RejectedRecipe):
        recipe, _ = parse_recipe(data)
        chart = _chart(recipe, net.faults) if recipe else ""
        return DraftView(text=text, recipe=data, problems=_placed(net.texts, text, language), warnings=(), chart=chart)
    return DraftView(
        text=text, recipe=data, problems=(), warnings=_stated(net.warning_texts, language), chart=_chart(net.recipe, ())
    )


def _chart(recipe: Recipe, faults: Sequence[str]) -> str:
    drawing = draft_drawing(recipe, faults)
    return editor_svg(drawing) if drawing else ""


def _imported(text: str, pou: str, language: str) -> DraftView:
    """Return PLCopen XML as a recipe, or with all its faults."""
    # A text has been decoded: the encoding that it declares is that of its file.
    head, rest = text[:_MOST_DECLARED], text[_MOST_DECLARED:]
    imported = import_plcopen((_ENCODING.sub(r"\1", head, count=1) + rest).encode(), pou)
    if imported.recipe is None:
        return DraftView(text=text, recipe=None, problems=_of_plc(imported.faults, language), warnings=(), chart="")
    seen = view(text_of(imported.recipe), language=language)
    return replace(seen, warnings=(*(warning.stated(language) for warning in imported.warnings), *seen.warnings))


def _of_plc(faults: Sequence[PlcFinding], language: str) -> tuple[RecipeProblem, ...]:
    return tuple(RecipeProblem(message=fault.stated(language), line=fault.place.line or None) for fault in faults)


def edited(text: str, change: Change, seen: Change | None = None, language: str = ENGLISH) -> DraftView:
    """Return a text after a change. Raises Refused when it is not possible, or takes back that of another person."""
    recipe = _recipe_of(text)
    if seen is not None and (meanwhile := changed_meanwhile(recipe, change, seen)):
        raise Refused(MEMBER_CHANGED, join_texts("; ", map(difference_text, meanwhile)))
    after = edit(recipe, change)
    if isinstance(after, EditRefused):
        raise Refused("impossible_edit", after.reason, "The draft stays as it is.")
    return view(text_of(after), language=language)


def checked(text: str, language: str, types: tuple[str, ...] = ()) -> DraftCheck:
    """Return what a check finds in a text."""
    seen = view(text, language=language)
    if seen.recipe is None:
        return DraftCheck(problems=seen.problems)
    data = seen.recipe
    net = compile_recipe(data, checks=recipe_checks())
    if isinstance(net, RejectedRecipe):
        return DraftCheck(problems=_placed(net.texts, text, language))
    result = check_net(net, result_members(), types)
    findings = public_findings(result.findings, places_in(seen.text), language)
    return DraftCheck(
        problems=(), warnings=_stated(net.warning_texts, language), findings=findings, bounded=not result.is_complete
    )


def compared(old: str, new: str, language: str) -> RecipeComparison:
    """Return what differs between two texts. Raises Refused when one of them cannot be read."""
    found = differences(_recipe_of(old), _recipe_of(new))
    return RecipeComparison(
        differences=found, words=tuple(difference_text(item).in_language(language) for item in found)
    )


def difference_text(item: RecipeDifference) -> Text:
    """Return a difference for people."""
    element = _ELEMENTS[item.element]
    match item.kind:
        case DifferenceKind.ADDED | DifferenceKind.REMOVED if item.element == "transition":
            return _way_text(item)
        case DifferenceKind.ADDED:
            return Text.of("{element} {name} added", element=element, name=item.name)
        case DifferenceKind.REMOVED:
            return Text.of("{element} {name} removed", element=element, name=item.name)
        case DifferenceKind.CHANGED:
            return Text.of(
                "{element} {name}: {member} changed from {before} to {after}",
                element=element,
                name=item.name,
                member=_MEMBERS.get(item.member, item.member),
                before=_value(item.before),
                after=_value(item.after),
            )
        case _:
            assert_never(item.kind)


def _way_text(item: RecipeDifference) -> Text:
    """Return an added or removed transition with its condition, and its order among the ways that are tried with it."""
    is_added = item.kind is DifferenceKind.ADDED
    members = item.after if is_added else item.before
    condition = Text.of("always") if members["condition"] == ALWAYS else members["condition"]
    if is_added:
        return Text.of(
            "transition {name} added: {condition} (order {order})",
            name=item.name,
            condition=condition,
            order=members["order"],
        )
    return Text.of(
        "transition {name} removed: {condition} (order {order})",
        name=item.name,
        condition=condition,
        order=members["order"],
    )


_MEMBERS: Final = {
    "condition": Text.of("condition"),
    "priority": Text.of("priority"),
    "order": Text.of("order of the ways"),
}
"""The members that people read often, in their language; others have the name that they have in the text."""
_ELEMENTS: Final = {
    "recipe": Text.of("recipe"),
    "step": Text.of("step"),
    "branch": Text.of("branch"),
    "transition": Text.of("transition"),
    "action": Text.of("action"),
}


def _value(value: Any) -> str | Text:
    match value:
        case None:
            return Text.of("(default)")
        case str():
            return value
        case [[*_], *_]:
            # The paths of a branch, as the chart shows them.
            return " | ".join(" → ".join(map(str, path)) for path in value)
        case _:
            return msgspec.json.encode(value).decode()


def places_in(text: str) -> Positions:
    """Return where the elements of a recipe stand in its text; none where they cannot be found."""
    try:
        return positions_of(text.removeprefix(codecs.BOM_UTF8.decode()))
    except (ValueError, IndexError, RecursionError):
        return NO_POSITIONS


def _recipe_of(text: str) -> Recipe:
    recipe, faults = parse_recipe(read_json_text(text.encode()))
    if recipe is None or faults:
        reason = Text.of("the text cannot be read as a recipe: {fault}", fault=faults[0])
        raise Refused("unreadable_draft", reason, "Correct it as a text first.")
    return recipe


@functools.lru_cache(maxsize=1)
def _net_of(text: str) -> Net:
    """Return a compiled text; many jobs are replayed with one. Raises Refused for one that cannot run."""
    net = compile_recipe(read_json_text(text.encode()))
    if isinstance(net, RejectedRecipe):
        raise Refused("recipe", join_texts("; ", net.texts[:_MOST_FAULTS]), "Correct the draft first.")
    return net


def _readable_part(text: str) -> Recipe:
    """Return a text as a recipe, without elements where it cannot be read."""
    try:
        recipe, _ = parse_recipe(read_json_text(text.encode()))
    except Refused:
        recipe = None
    return recipe or Recipe(())


def condition_fault(recipe: Recipe, condition: str, language: str) -> ConditionFault:
    """Return why a condition cannot be read with the names of a recipe."""
    names = Names(frozenset(step.name for step in recipe.steps), {action.name: () for action in recipe.actions})
    try:
        compile_condition(condition, names)
    except ExpressionSyntaxError as error:
        return ConditionFault(fault=error.text.in_language(language))
    return ConditionFault(fault="")


def _of_json(refused: Refused, language: str) -> RecipeProblem:
    place = _JSON_PLACE.search(refused.message)
    line, column = map(int, place.groups()) if place else (None, None)
    return RecipeProblem(message=refused.text.in_language(language), line=line, column=column)


def _stated(texts: Sequence[Text], language: str) -> tuple[str, ...]:
    return tuple(text.in_language(language) for text in texts)


def _placed(faults: Sequence[Text], text: str, language: str = ENGLISH) -> tuple[RecipeProblem, ...]:
    return tuple(_problems(faults, places_in(text) if faults else NO_POSITIONS, language))


def _problems(faults: Sequence[Text], places: Positions, language: str) -> Iterator[RecipeProblem]:
    for fault in faults:
        message, found = fault.in_language(language), _PLACE.match(str(fault))
        if found is None:
            yield RecipeProblem(message=message)
            continue
        element, number = ElementType(found[1]), int(found[2])
        line, column = places.get((element, number), (None, None))
        yield RecipeProblem(message=message, element=element, number=number, line=line, column=column)


def answer(request: Request) -> Struct:
    """Return the answer to a request. Raises Refused."""
    match request:
        case ViewText(text=text, pou=pou, language=language):
            return view(text, pou, language)
        case EditText(text=text, change=change, seen=seen, language=language):
            return edited(text, change, seen, language)
        case CheckText(text=text, language=language, types=types):
            return checked(text, language, types)
        case CompareTexts(old=old, new=new, language=language):
            return compared(old, new, language)
        case RunTests(text=text, tests=tests, language=language):
            data = read_json_text(text.encode())
            return RecipeTestReport(results=tuple(run_test(test, data, language) for test in tests))
        case ExportText(text=text, name=name, created=created):
            written = export_plcopen(_net_of(text), read_json_text(text.encode()), name, created)
            return RecipeFile(written.decode())
        case TryText(text=text, decisions=decisions, language=language):
            return tried(_recipe_of(text), read_json_text(text.encode()), decisions, language)
        case DrawActive(text=text, active=active):
            return DrawnChart(draft_svg(_recipe_of(text), (), active))
        case DrawComparison(old=old, new=new, language=language):
            return DrawnChart(comparison_svg(_recipe_of(old), _recipe_of(new), language))
        case ReplayJob(text=text, job_id=job_id, documents=documents, language=language):
            return replayed_job(job_id, documents, _net_of(text), language)
        case EvaluateCondition(condition=condition, step=step, job_id=job_id, documents=documents):
            value = condition_value(job_id, documents, condition, step)
            return ConditionValues(values=(value,) if value else ())
        case ReadCondition(text=text, condition=condition, language=language):
            return condition_fault(_readable_part(text), condition, language)
        case ListActions(recipes=recipes):
            parsed = (parse_recipe(data)[0] for data in recipes)
            return ListedActions(tuple(action for recipe in parsed if recipe for action in recipe.actions))
        case NameJob(documents=documents):
            return names_of_job(documents)
        case OfferNames(text=text, past=past, parameters=parameters, mirrors=mirrors):
            return offered_names(_readable_part(text), past, parameters, mirrors)
        case _:
            assert_never(request)


async def ask_here(request: Request, answer_type: type[_T]) -> _T:
    """Return the answer to a request in this process, as commands need it. Raises Refused."""
    return msgspec.convert(answer(request), answer_type)


def answer_encoded(request: bytes) -> bytes:
    """Return the answer to a request, both as JSON."""
    try:
        found = EncodedAnswer(msgspec.Raw(msgspec.json.encode(answer(msgspec.json.decode(request, type=Request)))))
    except Refused as refused:
        found = EncodedAnswer(refusal=RefusedRequest(refused.kind, refused.text, refused.advice_text))
    return msgspec.json.encode(found)


if __name__ == "__main__":
    os.nice(_NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer, answer_encoded)
