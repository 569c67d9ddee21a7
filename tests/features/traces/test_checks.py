"""The directory of traces is examined by `edge doctor`."""

from pathlib import Path

from edge.features.traces.checks import examine_traces
from edge.features.traces.settings import TracesSettings
from edge.model.finding import Level, PublicHealthFinding, public_form


async def found(**settings: object) -> list[PublicHealthFinding]:
    return [public_form(trace) async for trace in examine_traces(TracesSettings(**settings))]  # type: ignore[arg-type]


async def test_gateway_without_traces_has_no_finding() -> None:
    assert await found() == []


async def test_directory_with_files_is_counted(tmp_path: Path) -> None:
    (tmp_path / "J1").mkdir()
    (tmp_path / "J1" / "a.json.gz").write_bytes(b"a" * (1 << 20))
    (finding,) = await found(directory=str(tmp_path), max_bytes=2 << 20)
    assert (finding.level, "1 files, 1 of 2 MiB" in finding.found) == (Level.OK, True)


async def test_file_removed_during_the_check_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "J1").mkdir()
    (tmp_path / "J1" / "gone.json.gz").symlink_to("nowhere")
    (finding,) = await found(directory=str(tmp_path), max_bytes=2 << 20)
    assert (finding.level, "0 files" in finding.found) == (Level.OK, True)


async def test_missing_directory_is_created_later(tmp_path: Path) -> None:
    (finding,) = await found(directory=str(tmp_path / "a" / "b"))
    assert finding.level is Level.OK


async def test_file_in_place_of_the_directory_fails(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("")
    (finding,) = await found(directory=str(tmp_path / "traces"))
    assert (finding.level, "is not a directory" in finding.found) == (Level.FAILING, True)


async def test_unwritable_directory_fails(tmp_path: Path) -> None:
    settings = TracesSettings(directory=str(tmp_path))
    (finding,) = [public_form(trace) async for trace in examine_traces(settings, may_write=lambda _: False)]
    assert (finding.level, "traces are lost" in finding.found) == (Level.FAILING, True)


async def test_disk_with_less_space_than_the_limit_is_a_warning(tmp_path: Path) -> None:
    (finding,) = await found(directory=str(tmp_path), max_bytes=1 << 40)
    assert (finding.level, "less than max_bytes" in finding.found) == (Level.WARNING, True)
