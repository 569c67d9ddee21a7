"""Writes results of tests of recipes as JUnit XML, the form that servers of continuous integration read."""

from collections.abc import Sequence
from html import escape

from edge.features.recipes.recipe_tests import RecipeTestResult


def junit_xml(results: Sequence[RecipeTestResult]) -> str:
    """Return a document with a suite for each Work Master; times are virtual seconds."""
    names = dict.fromkeys(result.work_master for result in results)
    suites = [_suite(name, [result for result in results if result.work_master == name]) for name in names]
    failures = sum(not result.is_passed for result in results)
    head = f'<testsuites name="recipes" tests="{len(results)}" failures="{failures}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>", ""])


def _suite(name: str, results: Sequence[RecipeTestResult]) -> str:
    failures = sum(not result.is_passed for result in results)
    cases = "\n".join(map(_case, results))
    return f'<testsuite name={_attribute(name)} tests="{len(results)}" failures="{failures}">\n{cases}\n</testsuite>'


def _case(result: RecipeTestResult) -> str:
    head = f"<testcase classname={_attribute(result.work_master)} name={_attribute(result.id)}"
    time = f' time="{result.seconds:.3f}"' if result.seconds is not None else ""
    if result.is_passed:
        return f"{head}{time}/>"
    text = _printable("; ".join(result.reasons))
    return f"{head}{time}><failure message={_attribute(text)}>{escape(text)}</failure></testcase>"


def _attribute(text: str) -> str:
    return f'"{escape(_printable(text))}"'


def _printable(text: str) -> str:
    """Return a text without the characters that XML 1.0 forbids."""
    return "".join(character if character.isprintable() else " " for character in text)
