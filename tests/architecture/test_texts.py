"""Every text for people has a translation in each catalogue, with the same values."""

import tomllib

import pytest

from tests.architecture.fragments import fragments, has_english_word, untranslated
from tests.architecture.sources import ROOT
from tests.architecture.texts import CATALOGUES, catalogue, languages, missing, names_in, origins

TRANSLATED = [language for language in languages() if language != "en"]


def test_ids_of_every_kind_are_read_from_the_source() -> None:
    examples = {
        ("edge/station/stored_job.py", "there is no job order {job_id!r}"),  # Text.of
        ("edge/sfc/advance.py", "the run is paused already"),  # a field of Ignored
        ("edge/config/opcua.py", "advertise: endpoint needs a fixed port"),  # what a function yields
        ("edge/config/sections.py", "the path of a directory"),  # what is expected of a key of the settings
        ("edge/station/jobs.py", "no such job order in this scope"),  # the reasons of a CallAnswer
        ("edge/features/page", "Look at the log of the gateway."),  # a constant of the module
        ("edge/features/admin", "It knows no options"),  # one branch of an expression
        ("edge/features/telemetry", "{name} is offline"),  # the message of a built-in rule
    }
    ids = {origin.id for origin in origins()}
    assert [text for path, text in examples if (ROOT / path).exists() and text not in ids] == []


def test_values_of_a_text_are_the_places_of_its_id() -> None:
    wrong = [
        f"{origin.path}:{origin.line} {origin.id}"
        for origin in origins()
        if origin.values is not None and origin.values != names_in(origin.id)
    ]
    assert wrong == []


def test_no_value_of_a_text_is_an_english_fragment() -> None:
    """Make a fragment a nested `Text`, or state the whole sentence for each case."""
    assert [f"{path}:{line} {constant!r}" for path, line, constant in fragments()] == []


def test_no_text_is_an_f_string() -> None:
    """A text that is put together has another id each time, and no catalogue has it: use `Text.of`."""
    assert [f"{path}:{line} {constant!r}" for path, line, constant in untranslated()] == []


@pytest.mark.parametrize(
    ("constant", "is_fragment"),
    [
        ("no answer in {} s", True),
        ("its result", True),
        ("none", True),
        ("max_message_bytes", False),
        ("{} min {} s", False),
    ],
)
def test_fragments_differ_from_identifiers(constant: str, *, is_fragment: bool) -> None:
    assert has_english_word(constant) is is_fragment


def test_lines_for_a_new_language_are_toml_with_every_id() -> None:
    assert tomllib.loads(missing("none")).keys() == {origin.id for origin in origins()}


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_has_a_translation(language: str) -> None:
    assert missing(language) == "", f"add these lines to {CATALOGUES / language}.toml"
    assert [text for text, translated in catalogue(language)["texts"].items() if not translated] == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_places_of_a_translation_are_those_of_its_id(language: str) -> None:
    texts = catalogue(language)["texts"]
    assert {text: translated for text, translated in texts.items() if names_in(translated) != names_in(text)} == {}


@pytest.mark.parametrize("language", TRANSLATED)
def test_no_catalogue_has_a_text_that_the_source_lacks(language: str) -> None:
    """A text below the comment of a folder that was removed, such as that of a feature, may stay."""
    ids, is_removed, stale = {origin.id for origin in origins()}, False, []
    ordered = iter(catalogue(language)["texts"])
    lines = (ROOT / CATALOGUES / f"{language}.toml").read_text(encoding="utf-8").partition("[texts]\n")[2]
    for line in lines.splitlines():
        if line.startswith("# edge/"):
            is_removed = not (ROOT / line.removeprefix("# ")).exists()
        elif line and (text := next(ordered)) not in ids and not is_removed:
            stale.append(text)
    assert stale == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_text_of_one_feature_stands_below_its_folder(language: str) -> None:
    """Texts of Sparkplug stood below other folders: without the feature they were left over.

    A text of two features stands below one of them; it may stay there when that one was removed.
    """
    rooms: dict[str, set[str]] = {}
    for origin in origins():
        rooms.setdefault(origin.id, set()).add(str(origin.room))
    room, wrong = "", []
    ordered = iter(catalogue(language)["texts"])
    lines = (ROOT / CATALOGUES / f"{language}.toml").read_text(encoding="utf-8").partition("[texts]\n")[2]
    for line in lines.splitlines():
        if line.startswith("# edge/"):
            room = line.removeprefix("# ")
        elif line and len(own := rooms.get(text := next(ordered), set())) == 1 and own != {room}:
            wrong += [text for place in own if place.startswith("edge/features/") and (ROOT / room).exists()]
    assert wrong == []


@pytest.mark.parametrize("language", languages())
def test_labels_of_the_pages_have_equal_keys_in_all_languages(language: str) -> None:
    labels = catalogue(language)["labels"]
    assert labels.keys() == catalogue("en")["labels"].keys()
    assert [key for key, label in labels.items() if not label] == []
