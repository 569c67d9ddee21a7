"""An examination ends in time and reports all findings, also if a part of it fails."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.config import MqttSettings, RedisSettings
from edge.features.admin.doctor import examine, findings_of
from edge.foundation.errors import Unavailable
from edge.model.finding import HealthFinding, Level, ok, public_form
from tests.app.running import opcua_in, settings_of, written
from tests.features.page.foreign_words import english_words

pytestmark = pytest.mark.slow


async def breaking(error: Exception) -> AsyncIterator[HealthFinding]:
    yield ok("first", "found before")
    raise error


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (Unavailable("the broker is away", "start it"), "the broker is away"),
        (PermissionError(13, "Permission denied", "/etc/secret"), "Permission denied"),
        (KeyError("a defect"), "KeyError('a defect')"),
    ],
)
async def test_failed_examination_is_a_finding_and_hides_no_other_finding(error: Exception, reported: str) -> None:
    findings = list(map(public_form, await findings_of("part", breaking(error))))
    assert [(finding.subject, finding.level) for finding in findings] == [("first", Level.OK), ("part", Level.FAILING)]
    assert reported in findings[1].found
    assert findings[1].advice


async def test_blocked_examination_is_cancelled() -> None:
    async def hanging() -> AsyncIterator[HealthFinding]:
        yield ok("first", "found before")
        await asyncio.Event().wait()

    findings = list(map(public_form, await findings_of("part", hanging(), within=0.05)))
    assert findings[1].found == "no answer within 0.05 s"


async def test_examinations_run_concurrently(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    findings = list(map(public_form, await examine(file, {})))
    subjects = [finding.subject for finding in findings]
    assert subjects[:2] == ["settings", "versions"]
    # A full disk or a wrong clock is the cause of what the others find.
    assert subjects.index("clock") < subjects.index("store") < subjects.index("MES")
    assert {"MES", "equipment wrench", "equipment camera", "OPC UA port", "clock", "memory", "versions"} <= {*subjects}
    assert not [finding for finding in findings if finding.level is Level.FAILING], findings


@pytest.mark.parametrize("language", ["de", "fr"])
async def test_findings_have_no_english_word_in_another_language(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, language: str
) -> None:
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    findings = [public_form(finding, language) for finding in await examine(file, {})]
    texts = {text for finding in findings for text in (finding.subject, finding.found, finding.advice)}
    assert {text: words for text in texts if (words := english_words(text.replace("camera", ""), language))} == {}


async def test_invalid_settings_are_reported_and_the_machine_is_examined(
    tmp_path: Path,
) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[redis]\nulr = 1\n[mqtt]\nurl = 'http://x'\n")
    findings = list(map(public_form, await examine(file, {})))
    assert [finding.subject for finding in findings if finding.level is Level.FAILING] == ["settings", "settings"]
    assert "versions" in {finding.subject for finding in findings}


def test_blocked_call_does_not_delay_the_end(tmp_path: Path) -> None:
    forever = threading.Event()

    async def stuck() -> AsyncIterator[HealthFinding]:
        await asyncio.to_thread(forever.wait)
        yield ok("never", "seen")

    async def run() -> list[HealthFinding]:
        await examine(tmp_path / "none.toml", {})
        return await findings_of("disk", stuck(), within=0.1)

    began = time.monotonic()
    (finding,) = asyncio.run(run())
    forever.set()
    assert finding.level is Level.FAILING
    assert time.monotonic() - began < 60
