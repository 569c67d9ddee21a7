"""`edge recipes test`: runs the tests of a folder of station files, or those that are stored."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import click

from edge.cli.terminal.operator import operator_languages
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import StoreAccess, json_option, read_json, run_on_store, settings_option
from edge.features.recipes.recipe_tests import RecipeTest, RecipeTestResult, load_tests, parse_tests, run_test
from edge.foundation.text import language_for
from edge.store.resources import load_work_masters


@click.command(epilog="Example: edge recipes test station.d --junit recipes.xml")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results as JUnit XML.")
@settings_option
@json_option
def test(folder: Path | None, junit: Path | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Run the tests of recipes in virtual time.

    FOLDER contains station files: tests in recipe-tests/, recipes in scopes/SCOPE/workmasters/. It needs no gateway and
    no store. Without FOLDER the stored tests run with the released recipes. The exit status is 0 when every test
    passes, 1 when one fails, 2 when a file has a fault or there is no test.
    """
    if folder is None:
        tests, recipes = run_on_store(settings_file, _read_stored)
    else:
        tests, recipes = _read_tests(folder), _read_recipes(folder)
    results = list(_results(tests, recipes))
    if junit is not None:
        _write(junit, junit_xml(results))
    failed = [result for result in results if not result.is_passed]
    if as_json:
        print_json({"tests": [{"passed": result.is_passed, **_public(result)} for result in results]})
    else:
        for result in results:
            _print(result)
        print_text(f"{len(results)} tests, {len(failed)} failed")
    if failed:
        raise SystemExit(1)


def _results(tests: Sequence[RecipeTest], recipes: Mapping[str, Mapping[str, object]]) -> Iterator[RecipeTestResult]:
    """Yield the result of each test with the recipe of each scope that has its Work Master."""
    language = language_for(operator_languages())
    if not tests:
        usage_failure("there is no test: station files have them in recipe-tests/")
    lost = [test for test in tests if test.work_master not in recipes]
    if lost:
        usage_failure(*(f"recipe test {test.id!r}: unknown Work Master {test.work_master!r}" for test in lost))
    for test in tests:
        for recipe in recipes[test.work_master].values():
            yield run_test(test, recipe, language)


def _public(result: RecipeTestResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


def _print(result: RecipeTestResult) -> None:
    print_text(f"{'ok    ' if result.is_passed else 'FAILED'} {result.work_master}: {result.id}")
    for reason in result.reasons:
        print_text(f"       {reason}")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        usage_failure(f"{file}: cannot be written: {error.strerror}")


def _read_tests(folder: Path) -> Sequence[RecipeTest]:
    tests: list[RecipeTest] = []
    problems: list[str] = []
    for file in sorted(folder.glob("recipe-tests/**/*.json")):
        read, faults = parse_tests(read_json(file))
        tests += read
        problems += [f"{file}: {fault}" for fault in faults]
    if problems:
        usage_failure(*problems)
    return tests


def _read_recipes(folder: Path) -> dict[str, dict[str, object]]:
    """Return the recipes by Work Master and scope; a recipe alone is the Work Master with the name of its file."""
    recipes: dict[str, dict[str, object]] = {}
    for file in sorted(folder.glob("scopes/*/workmasters/**/*.json")):
        scope, data = file.relative_to(folder).parts[1], read_json(file)
        for item in data if isinstance(data, list) else [data]:
            if not isinstance(item, dict):
                usage_failure(f"{file}: a Work Master must be an object")
            name, recipe = (item["ID"], item.get("data")) if "ID" in item else (file.stem, item)
            recipes.setdefault(str(name), {})[scope] = recipe
    return recipes


async def _read_stored(at: StoreAccess) -> tuple[Sequence[RecipeTest], dict[str, dict[str, object]]]:
    recipes: dict[str, dict[str, object]] = {}
    for scope in at.settings.gateway.scopes:
        for master in await load_work_masters(at.store, scope):
            recipes.setdefault(master.id, {})[scope] = master.data
    return await load_tests(at.store), recipes


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
