"""The feature of the page `add-a-feature` is written into a copy of the product, and works there."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edge.foundation.errors import Unavailable
from tests.architecture.sources import ROOT
from tests.free_ports import free_port

PAGE = (ROOT / "docs" / "how-to" / "add-a-feature.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`(edge/features/shifts/\w+\.py)`[^`]*(?:`[^`]+`[^`]*)*?```python\n(.*?)```", PAGE, re.DOTALL))
(SETTINGS,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "edge", tmp_path / "edge", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = tmp_path / "edge" / "app" / "features.py"
    table.write_text(
        table.read_text(encoding="utf-8").replace("FEATURES = (\n", 'FEATURES = (\n    "shifts",\n'), "utf-8"
    )
    return tmp_path


def edge(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-P", "-m", "edge", *arguments]
    return subprocess.run(call, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False)


def environment(copy: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(copy), "PATH": os.environ["PATH"], "EDGE_LOGGING__FORMAT": "json"}


def test_page_has_each_file_of_the_feature() -> None:
    names = {Path(name).stem for name in FILES}
    assert names == {"__init__", "settings", "shift_of", "service", "commands", "feature"}


def test_command_and_settings_of_the_added_feature_work(copy: Path) -> None:
    settings = copy / "edge.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    assert "Show the shift of now." in edge(copy, "--help").stdout
    assert re.fullmatch(r"(06|14|22):00 UTC\n", edge(copy, "shifts", "--settings", str(settings)).stdout)
    settings.write_text(SETTINGS.replace("begins", "starts"), encoding="utf-8")
    refused = edge(copy, "check", "settings", str(settings))
    assert (refused.returncode, "shifts.starts" in refused.stdout + refused.stderr) == (2, True), refused


async def test_gateway_with_the_added_feature_counts_shifts(copy: Path) -> None:
    port, settings = free_port(), copy / "edge.toml"
    settings.write_text(SETTINGS.replace("9480", str(port)), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge", "run", "--settings", str(settings)),
        cwd=copy,
        env=environment(copy),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            assert process.stderr
            log = ""
            while '"ready"' not in log:
                line = (await process.stderr.readline()).decode()
                if not line:
                    raise Unavailable(log)
                log += line
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            page = (await reader.read()).decode()
            writer.close()
        assert "3 shifts" in log
        assert 'microdcs_edge_shift_jobs_ended_total{shift="14"} 0.0' in page
    finally:
        process.terminate()
        await process.wait()
