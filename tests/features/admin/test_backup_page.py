"""An engineer downloads and uploads backups at the page: what can be restored here stays, the rest is refused."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import Users
from edge.config import OperationsSettings, RedisSettings
from edge.features.admin.administration import Administration
from edge.features.admin.archive import read_archive, write_archive
from edge.features.admin.backup import Part, back_up
from edge.features.page.guard import MOST_FILE_BYTES
from edge.foundation.text import Text
from tests.features.admin.gateways import furnish
from tests.features.page.chromium import chromium
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import SETTINGS, Browser, Reply, services_of, serving
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.slow

NOW = 1_700_000_000_000
NAME = f"{SETTINGS.gateway.name}-backup-1.tar.gz"
FILE = "/api/v1/backups/upload"


def content_of(file: Path) -> bytes:
    return file.read_bytes()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _drop(_: Text) -> None:
    """Drop the progress of a backup."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of operations."""
    found = tmp_path / "operations"
    found.mkdir()
    return found


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    """The settings of a gateway with a store of its own."""
    return furnish(tmp_path / "etc", RedisSettings(url=f"embedded:{tmp_path / 'store'}"))


@pytest_asyncio.fixture
async def browser(plant: Plant, users: Users, folder: Path, settings_file: Path) -> AsyncIterator[Browser]:
    settings = replace(SETTINGS, operations=OperationsSettings(directory=str(folder), kept_files=2))
    port = Administration(settings, settings_file)
    async with serving(services_of(plant, users, ports={"admin": port})) as client:
        yield client


async def _backup(file: Path, settings_file: Path, *parts: Part) -> bytes:
    await back_up(file, settings_file, {}, parts, NOW, _drop)
    return content_of(file)


async def _send(client: Browser, content: bytes, **headers: str) -> Reply:
    sent = {"origin": client.origin, "content-type": "application/gzip"} | headers
    return await client.send("POST", FILE, sent, content)


async def test_backup_is_listed_and_downloaded(browser: Browser, folder: Path, settings_file: Path) -> None:
    content = await _backup(folder / NAME, settings_file)
    max_ = await browser.logged_in("max")
    (backup,) = (await max_.get("/api/v1/backups")).json["backups"]
    assert (backup["size_bytes"], backup["made_at"], backup["has_keys"]) == (
        len(content),
        "2023-11-14T22:13:20.000Z",
        False,
    )
    reply = await max_.get(f"/api/v1/backups/{backup['name']}")
    assert (reply.body, reply.headers["content-type"]) == (content, "application/gzip")
    assert backup["name"] in (await max_.get("/backups")).text
    assert (await (await browser.logged_in("alice")).get(f"/api/v1/backups/{backup['name']}")).status == 403


@pytest.mark.parametrize(
    "name", ["none.tar.gz", "..%2f..%2fetc%2fedge.toml", "%2fetc%2fpasswd", "other-backup-1.tar.gz"]
)
async def test_only_backups_of_the_folder_are_downloaded(browser: Browser, folder: Path, name: str) -> None:
    (folder / "other-backup-1.tar.gz").write_bytes(b"of another gateway")
    assert (await (await browser.logged_in("max")).get(f"/api/v1/backups/{name}")).status == 404


async def test_backup_with_keys_stays_on_the_machine(browser: Browser, folder: Path, settings_file: Path) -> None:
    await _backup(folder / NAME, settings_file, Part.KEYS)
    max_ = await browser.logged_in("max")
    (backup,) = (await max_.get("/api/v1/backups")).json["backups"]
    assert backup["has_keys"]
    assert (await max_.get(f"/api/v1/backups/{backup['name']}")).json["kind"] == "has_keys"
    assert f"/api/v1/backups/{NAME}" not in (await max_.get("/backups")).text


async def test_uploaded_backup_is_checked_and_kept(
    browser: Browser, folder: Path, settings_file: Path, tmp_path: Path
) -> None:
    content = await _backup(tmp_path / "b.tar.gz", settings_file)
    max_ = await browser.logged_in("max")
    checked = (await _send(max_, content)).json
    assert content_of(Path(checked["file"])) == content
    assert [backup["is_uploaded"] for backup in checked["backups"]] == [True]
    assert checked["file"] in (await max_.get("/backups")).text
    assert names_in(folder) == [checked["name"]]


async def test_rest_of_an_upload_before_a_power_cut_is_replaced(
    browser: Browser, folder: Path, settings_file: Path, tmp_path: Path
) -> None:
    content = await _backup(tmp_path / "b.tar.gz", settings_file)
    (folder / f"{SETTINGS.gateway.name}-upload.part").write_bytes(b"half of a file")
    checked = (await _send(await browser.logged_in("max"), content)).json
    assert names_in(folder) == [checked["name"]]


async def test_upload_that_cannot_be_restored_leaves_no_file(
    browser: Browser, folder: Path, settings_file: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar.gz"
    content = await _backup(file, settings_file)
    manifest, contents = read_archive(file)
    write_archive(file, {"manifest.json": b"{}", **contents}, NOW)
    max_ = await browser.logged_in("max")
    for wrong, reason in (
        (b"x", "it is not an archive"),
        (content[:-200], "it is not an archive"),
        (file.read_bytes(), "its manifest cannot be read"),
    ):
        refused = (await _send(max_, wrong)).json
        assert refused["kind"] == "archive"
        assert reason in refused["reason"]
    assert manifest.gateway
    assert names_in(folder) == []


async def test_upload_needs_an_engineer_the_page_and_a_size(browser: Browser, folder: Path) -> None:
    max_ = await browser.logged_in("max")
    assert (await _send(await browser.logged_in("alice"), b"x")).status == 403
    assert (await _send(max_, b"x", origin="https://elsewhere.example")).status == 403
    assert (await _send(max_, b"x", content_type="multipart/form-data")).status == 415
    endless = {"origin": max_.origin, "content-type": "application/gzip", "content-length": str(MOST_FILE_BYTES + 1)}
    assert (await max_.send("POST", FILE, endless)).status == 413
    assert names_in(folder) == []


@pytest.mark.long
async def test_backup_is_uploaded_at_the_page(
    browser: Browser, folder: Path, settings_file: Path, tmp_path: Path
) -> None:
    await _backup(tmp_path / "b.tar.gz", settings_file)
    async with chromium() as screen:
        await screen.show(800, 480, language="fr")
        await screen.log_in(browser.origin, "max", PASSWORD)
        await screen.go(f"{browser.origin}/backups")
        document = await screen.call("DOM.getDocument")
        field = await screen.call("DOM.querySelector", nodeId=document["root"]["nodeId"], selector="input[type=file]")
        await screen.call("DOM.setFileInputFiles", nodeId=field["nodeId"], files=[str(tmp_path / "b.tar.gz")])
        await screen.run("document.querySelector('form[data-upload] button').focus()")
        await screen.press("Enter")
        await screen.until("document.querySelector('[data-part=backups] li')")
        assert not await screen.run("document.documentElement.scrollWidth > innerWidth")
        assert len(names_in(folder)) == 1
        assert screen.faults == []
