"""Texts of the gateway are translated to the language of the reader; the table contains every refusal."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import edge
from edge.features.page.german_reasons import GERMAN, reason_in
from tests.features.page.serving import Browser

ROOT = Path(edge.__file__).parent
SOURCES = (
    *(ROOT / "features/page").glob("*.py"),
    *(ROOT / "features").glob("*/api_*.py"),
    *(ROOT / name for name in ("station/intervene.py", "sfc/intervention.py", "features/telemetry/alarm_requests.py")),
    *(ROOT / "access" / name for name in ("locks.py", "mode.py", "operations.py")),
    ROOT / "features/telemetry/rules/alarm.py",
)
RAISED = {"Refused", "Denied", "Ignored", "AlarmRefusal"}
OF_PROGRAMS = {
    # A release is not asked for on the page.
    "a release needs an operator and a reason",
    "Say how the tool was made safe.",
    "the settings have no equipment 7",
    "They have 7.",
    "no stop or reset of 7 is open",
    "List them: edge equipment list. The gateway repeats a disable until the controller confirms it.",
    "7: 7",  # a file and the reason of the operating system
    "cannot listen for browsers at 7:7: 7",
    "Is another program there already, and is the address ours?",
    "Send a user name and its token, as curl does with -u NAME:TOKEN: edge users token --help",
}


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1 job at work; store holds 2 MiB", "1 Auftrag in Arbeit; Speicher belegt 2 MiB"),
        ("Pause is refused: Pause is not allowed in state Ended.", "Pause ist abgelehnt: Pause ist im Zustand Ended"),
        (
            "the tool may still be active, not confirmed since 2023-11-14 22:13:20Z: release: MID 0042 declined",
            "das Werkzeug ist vielleicht noch aktiv, nicht bestätigt seit 2023-11-14 22:13:20Z: release",
        ),
        ("actions.a.result.ok: no value yet", "actions.a.result.ok: noch kein Wert"),
        ("tighten is dispatched, b is pending", "tighten ist gesendet, b ist anstehend"),
        (
            "action a of one failed: waits for a person (retry)",
            "Aktion a von one ist fehlgeschlagen: wartet auf",
        ),
        ("there is no job order '{} is {0}'", "es gibt keinen Auftrag '{} ist {0}'"),
        (
            "station differs from its files: 2 changed, 1 not in the files",
            "Station weicht von ihren Dateien ab: 2 geändert, 1 nicht in den Dateien",
        ),
        ("aborted by the MES", "vom MES abgebrochen"),
        ("stopped by anna at the station page", "von anna an der Stationsseite gestoppt"),
        ("aborted by alarm hot", "durch den Alarm hot abgebrochen"),
        ("Redis says ERR max number of clients reached", "Redis says ERR max number of clients reached"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_reason_is_translated(english: str, german: str) -> None:
    assert reason_in(english, "de").startswith(german)
    assert reason_in(english, "en") == english


def test_translations_have_the_placeholders_of_their_text() -> None:
    for english, german in GERMAN.items():
        assert len(re.findall(r"\{w?\}", english)) == german.count("{}"), english
        assert german
        assert not english.endswith(".")


def test_every_refusal_of_the_page_has_a_translation() -> None:
    named = {text.replace("{}", "7") for source in SOURCES for text in stated(source)}
    assert {word for word in named if reason_in(word, "de") == word} <= OF_PROGRAMS


async def test_problem_is_in_the_language_of_the_reader(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    answers = [(await eve.get("/api/v1/jobs/X", accept_language=text)).json for text in ("de", "en", "")]
    assert [answer["reason"] for answer in answers] == [
        "es gibt keinen Auftrag 'X'",
        *["there is no job order 'X'"] * 2,
    ]
    assert {answer["kind"] for answer in answers} == {"unknown_job"}
    assert "es gibt keinen Auftrag" in (await eve.get("/job?id=X", accept_language="de")).text


def stated(source: Path) -> Iterator[str]:
    """Yield the texts of refusals in a file: `{}` stands for a value."""
    for function in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {
                target.id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in RAISED:
                    for given in call.args:
                        text = _text(names.get(given.id, given) if isinstance(given, ast.Name) else given)
                        if " " in text:
                            yield text


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case _:
            return ""
