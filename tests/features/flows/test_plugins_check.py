"""A node kind that crashes or hangs at its import is left out; the others are loaded."""

import time
from pathlib import Path

import pytest

from edge.features.flows.nodes.registry import BUILT_IN
from edge.features.flows.plugins import ImportLimits, load_checked_kinds
from tests.features.flows.site_kinds import write_check

pytestmark = pytest.mark.slow


async def test_kind_that_crashes_at_its_import_is_left_out(tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    texts = {
        "aborts": "import os\nos.abort()",
        "ends": "import sys\nsys.exit(3)",
        "leaves": "import os\nos._exit(4)",
        "raises": "1 / 0",
        "takes": "x = bytearray(8 << 30)",
        "wrong": "KIND = 5",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    site_kinds = await load_checked_kinds(folder)
    assert set(site_kinds.kinds) - set(BUILT_IN) == {"site.check"}
    assert {Path(origin).stem: fault for origin, fault in site_kinds.faults.items()} == {
        "aborts": "its import ended the process (SIGABRT)",
        "ends": "SystemExit: 3",
        "leaves": "its import ended the process (status 4)",
        "raises": "ZeroDivisionError: division by zero",
        "takes": "MemoryError: ",
        "wrong": "KIND is a NodeKind with the work Compute",
    }


async def test_kind_whose_import_hangs_is_left_out(tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(3600)")
    site_kinds = await load_checked_kinds(folder, ImportLimits(8.0))
    assert site_kinds.faults == {str(tmp_path / "hangs.py"): "its import took more than 8 s"}
    assert "site.check" in site_kinds.kinds


@pytest.mark.long
async def test_many_hanging_kinds_are_left_out_within_the_total_time_limit(tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    hanging = [tmp_path / f"hangs_{number}.py" for number in range(12)]
    for file in hanging:
        file.write_text("import time\ntime.sleep(3600)")
    began = time.monotonic()
    site_kinds = await load_checked_kinds(folder, ImportLimits(limit_s=5.0, total_s=8.0))
    assert time.monotonic() - began < 8 + 5
    assert set(site_kinds.faults) == set(map(str, hanging))
    assert site_kinds.faults[max(map(str, hanging))] == "the imports of the other node kinds took more than 8 s"
    assert "site.check" in site_kinds.kinds


async def test_check_process_that_does_not_start_leaves_out_all_kinds(tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    site_kinds = await load_checked_kinds(folder, ImportLimits(0.0))
    assert (site_kinds.kinds, list(site_kinds.faults)) == (BUILT_IN, [folder])


async def test_without_site_kinds_no_process_is_started(tmp_path: Path) -> None:
    assert (await load_checked_kinds(str(tmp_path))).kinds == BUILT_IN
    assert (await load_checked_kinds("")).faults == {}
