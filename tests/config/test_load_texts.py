"""Faults of the settings are texts: a person reads them in their language, too."""

from pathlib import Path

import pytest

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.foundation.errors import SettingsError

LINES = "[redis]\nurl = 'http://h'\nulr = 1\n[mqtt]\nurl = 5\n[opcua]\nmax_sessions = 0\n\n[gatway]\n"


def faults(file: Path, language: str) -> list[str]:
    """Return the faults of the settings in a language, without the file."""
    file.write_text(LINES)
    with pytest.raises(SettingsError) as raised:
        load_settings(file, {}, declared_sections())
    return [text.in_language(language).removeprefix(f"{file}: ") for text in raised.value.problem_texts]


def test_faults_of_settings_are_stated_in_german(tmp_path: Path) -> None:
    assert faults(tmp_path / "edge.toml", "de") == [
        "gatway: diesen Abschnitt gibt es nicht; ist gateway gemeint?",
        "redis.ulr: diesen Schlüssel gibt es nicht; ist url gemeint?",
        (
            "redis.url: erwartet: eine URL, die mit redis: oder rediss: oder redis+sentinel: oder rediss+sentinel: "
            "oder unix: oder embedded: beginnt, nicht http:"
        ),
        "mqtt.url: erwartet: eine URL, die mit mqtt: oder mqtts: beginnt; angegeben: eine ganze Zahl",
        "opcua.max_sessions: erwartet: eine ganze Zahl, mindestens 1 und höchstens 1000; angegeben: 0",
    ]


def test_no_fault_of_settings_is_english_in_french(tmp_path: Path) -> None:
    stated = faults(tmp_path / "edge.toml", "fr")
    assert not [text for text in stated if "expected" in text or "there is" in text]
