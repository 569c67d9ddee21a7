"""The results of a job with their units, and the curves of their traces, over the API and on the page."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

import gzip
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.features.traces.files import TraceFiles, TraceLimits
from edge.ports.result_trace import stored_in
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of
from tests.station.plant import FakeEquipment, Plant, until

pytestmark = pytest.mark.slow

LIMITS = TraceLimits(max_bytes=1 << 20, max_files=100, max_age_s=3600)
CURVES = [{"name": "Torque", "unit": "N·m", "values": [0.0, 42.1, 85.2]}, {"name": "<b>", "values": [1.0, 2.0]}]
RESULT = {"evaluation": "OK", "torque": {"value": 85.2, "unit": "N·m"}, "trace": {"channels": CURVES}}


@pytest.fixture
def services(plant: Plant, users: Users, tmp_path: Path) -> WebServices:
    return services_of(plant, users, ports={"traces": TraceFiles(tmp_path / "traces", LIMITS)})


async def answered(plant: Plant, tool: FakeEquipment, browser: Browser, folder: Path, result: Any) -> str:
    """Answer the first action of J1 with a result; return the hash of its trace."""
    kept = await TraceFiles(folder, LIMITS).keep("J1", result)
    await plant.answer(tool.commands[0], kept)

    async def shown() -> bool:
        return bool((await browser.get("/api/v1/jobs/J1/results")).json["results"])

    await until(shown)
    return next((reference.sha256 for reference in stored_in(kept)), "")


async def test_each_bolt_of_a_batch_is_shown(
    plant: Plant, tool: FakeEquipment, browser: Browser, tmp_path: Path
) -> None:
    eve = await browser.logged_in("eve")
    bolts = {str(n): {"evaluation": "OK", "torque": {"value": 80 + n, "unit": "N·m"}} for n in range(1, 25)}
    batch = {"evaluation": "OK", "counts": {"ok": 24, "not_ok": 0}, "results": bolts}
    await answered(plant, tool, eve, tmp_path / "traces", batch)
    (line,) = (await eve.get("/api/v1/jobs/J1/results")).json["results"]
    assert [value["name"] for value in line["values"]] == ["evaluation", "counts.ok", "counts.not_ok"]
    assert len(line["parts"]) == 24
    assert line["parts"][23] == {
        "name": "24",
        "evaluation": "OK",
        "measured": [{"name": "torque", "value": 104, "unit": "N·m"}],
    }
    page = (await eve.get("/job?id=J1")).text
    assert page.partition('class="parts"')[2].partition("</table>")[0].count("<tr><td>") == 24
    assert "104 N·m" in page


async def test_result_and_its_curves_are_shown(
    plant: Plant, tool: FakeEquipment, browser: Browser, tmp_path: Path
) -> None:
    eve = await browser.logged_in("eve")
    digest = await answered(plant, tool, eve, tmp_path / "traces", RESULT)
    (line,) = (await eve.get("/api/v1/jobs/J1/results")).json["results"]
    assert (line["action"], line["step"], line["attempt"], line["state"]) == ("a", "one", 1, "completed")
    assert line["values"][0] == {"name": "evaluation", "value": "OK", "unit": ""}
    assert line["values"][1:] == [{"name": "torque", "value": 85.2, "unit": "N·m"}]
    assert (line["traces"][0]["sha256"], line["traces"][0]["channels"]) == (digest, ["Torque", "<b>"])
    reply = await eve.get(f"/api/v1/jobs/J1/traces/{digest}")
    assert json.loads(gzip.decompress(reply.body))["job"] == "J1"
    assert reply.headers["content-disposition"] == f'attachment; filename="{digest}.json.gz"'
    curve = await eve.get(f"/api/v1/jobs/J1/traces/{digest}/0/curve.svg")
    assert "Torque [N·m]" in curve.text
    assert "sandbox" in curve.headers["content-security-policy"]
    assert "<b>" not in (await eve.get(f"/api/v1/jobs/J1/traces/{digest}/1/curve.svg")).text
    page = (await eve.get("/job?id=J1")).text
    assert "85.2 N·m" in page
    assert f"/traces/{digest}/1/curve.svg" in page


async def test_trace_that_is_missing_or_damaged_is_refused(
    plant: Plant, tool: FakeEquipment, browser: Browser, tmp_path: Path
) -> None:
    eve = await browser.logged_in("eve")
    digest = await answered(plant, tool, eve, tmp_path / "traces", RESULT)
    for path in (
        f"{'0' * 64}",
        "..%2F..%2Fetc",
        f"{digest}/2/curve.svg",
        f"{digest}/-1/curve.svg",
        f"{digest}/x/curve.svg",
    ):
        assert (await eve.get(f"/api/v1/jobs/J1/traces/{path}")).json["kind"] == "unknown_trace", path
    (file,) = (tmp_path / "traces").glob("*/*")
    file.write_bytes(b"other")
    assert (await eve.get(f"/api/v1/jobs/J1/traces/{digest}")).json["kind"] == "damaged"
    file.unlink()
    assert (await eve.get(f"/api/v1/jobs/J1/traces/{digest}/0/curve.svg")).json["kind"] == "unknown_trace"


@pytest.mark.parametrize("result", [5, "text", ["a"], {"a": {"b": {"value": True}}}, {"trace": {"points": 1}}])
async def test_result_of_any_type_is_shown(
    plant: Plant, tool: FakeEquipment, browser: Browser, tmp_path: Path, result: object
) -> None:
    eve = await browser.logged_in("eve")
    await answered(plant, tool, eve, tmp_path / "traces", result)
    assert (await eve.get("/api/v1/jobs/J1/results")).json["results"][0]["values"]
    assert (await eve.get("/job?id=J1")).status == 200


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def test_image_of_a_result_is_shown_and_downloaded(
    plant: Plant, tool: FakeEquipment, browser: Browser, tmp_path: Path
) -> None:
    async def parts() -> AsyncGenerator[bytes, None]:
        yield PNG

    eve = await browser.logged_in("eve")
    reference = await TraceFiles(tmp_path / "traces", LIMITS).store_file("J1", parts())
    claimed = to_builtins(replace(reference, media_type="text/html"))
    await answered(plant, tool, eve, tmp_path / "traces", {"file": claimed})
    (line,) = (await eve.get("/api/v1/jobs/J1/results")).json["results"]
    assert line["files"] == [{"sha256": reference.sha256, "size": len(PNG), "media_type": "image/png"}]
    assert not line["values"]
    reply = await eve.get(f"/api/v1/jobs/J1/files/{reference.sha256}")
    assert (reply.body, reply.headers["content-type"]) == (PNG, "image/png")
    assert reply.headers["content-disposition"] == f'attachment; filename="{reference.sha256}.png"'
    assert f'src="/api/v1/jobs/J1/files/{reference.sha256}?live"' in (await eve.get("/job?id=J1")).text
    for address in (f"files/{'0' * 64}", f"traces/{reference.sha256}"):
        assert (await eve.get(f"/api/v1/jobs/J1/{address}")).json["kind"] == "unknown_trace"
