"""The gateway reads the written settings of a site; invalid settings keep the existing file."""

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.features.admin.site_settings import FILE, Site, SiteEquipment, examine_site, next_steps, site_toml, write_site
from edge.features.joining.settings import IjtSettings
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.foundation.errors import SettingsError
from edge.model.finding import Level

WRENCH = SiteEquipment("wrench", "mqtt", ("tighten.v1",))
SCREWDRIVER = SiteEquipment("screwdriver", "openprotocol+tcp://127.0.0.1:4545", ("screw.v1",))
SPINDLE = SiteEquipment("spindle", "ijt+opc.tcp://127.0.0.1:4849", ("join.v1", "loosen.v1"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_gateway_reads_the_written_settings(tmp_path: Path) -> None:
    other = SiteEquipment("eye", "mqtts://eye:8883", ("look.v1",))
    site = Site("line-3", ("a", "b"), "mqtt://broker", "edge", "geheim", (WRENCH, SPINDLE, SCREWDRIVER, other))
    settings = write_site(site, tmp_path)
    assert (settings.gateway.name, settings.gateway.scopes) == ("line-3", ("a", "b"))
    assert (settings.mqtt.url, settings.mqtt.username, settings.mqtt.password) == ("mqtt://broker", "edge", "geheim")
    wrench, spindle, eye = (settings.southbound[name] for name in ("wrench", "spindle", "eye"))
    assert isinstance(wrench, MqttEquipmentSettings)
    assert isinstance(spindle, IjtSettings)
    assert isinstance(eye, MqttEquipmentSettings)
    assert isinstance(screwdriver := settings.southbound["screwdriver"], OpenProtocolSettings)
    assert screwdriver.url == "tcp://127.0.0.1:4545"
    assert (wrench.url, eye.url) == ("", "mqtts://eye:8883")
    assert (spindle.url, spindle.type_ids) == ("opc.tcp://127.0.0.1:4849", ("join.v1", "loosen.v1"))


def test_secret_files_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    write_site(Site("line-3", ("a",), "mqtt://broker", "edge", "geheim", (SPINDLE,)), tmp_path)
    assert mode_of(tmp_path / "passwords" / "mqtt") == 0o600
    assert mode_of(tmp_path / FILE) == 0o640
    assert mode_of(tmp_path / "opcua-client" / "own.pem") == 0o640
    assert b"geheim" not in (tmp_path / FILE).read_bytes()


def test_certificate_is_generated_once(tmp_path: Path) -> None:
    site = Site("line-3", ("a",), "", equipment=(SPINDLE,))
    write_site(site, tmp_path)
    first = (tmp_path / "opcua-client" / "own.pem").read_bytes()
    write_site(site, tmp_path)
    assert (tmp_path / "opcua-client" / "own.pem").read_bytes() == first


def test_invalid_settings_keep_the_existing_file(tmp_path: Path) -> None:
    wrong = Site("line 3", ("a",), "mqtt://broker")
    with pytest.raises(SettingsError, match=r"gateway\.name"):
        write_site(wrong, tmp_path)
    assert not (tmp_path / FILE).exists()
    write_site(Site("line-3", ("a",), "mqtt://broker"), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(SettingsError):
        write_site(wrong, tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_refused_answers_leave_no_secret_and_no_certificate(tmp_path: Path) -> None:
    site = Site("line-3", ("a",), "mqtt://broker", "edge", "geheim", (SPINDLE,))
    wrong = replace(site, name="line 3", password="other")
    with pytest.raises(SettingsError):
        write_site(wrong, tmp_path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    write_site(site, tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(SettingsError):
        write_site(wrong, tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert mode_of(tmp_path / "passwords" / "mqtt") == 0o600


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_unchanged_after_writing_toml(text: str) -> None:
    site = Site(text, (text,), text, text, equipment=(SiteEquipment(text or "x", "mqtt", (text,)),))
    read = tomllib.loads(site_toml(site, Path("/etc")))
    assert (read["gateway"]["name"], read["gateway"]["scopes"], read["mqtt"]["url"]) == (text, [text], text)
    assert read["southbound"][text or "x"]["type_ids"] == [text]


async def test_each_part_of_a_site_is_examined(tmp_path: Path, mqtt: MqttSettings) -> None:
    settings = write_site(Site("line-3", ("a",), mqtt.url, equipment=(WRENCH, SPINDLE, SCREWDRIVER)), tmp_path)
    levels = {str(finding.subject): finding.level for finding in await examine_site(settings)}
    assert levels["MES"] is Level.OK
    assert levels["equipment wrench"] is Level.OK
    assert levels["equipment spindle"] is Level.FAILING
    assert levels["equipment screwdriver"] is Level.FAILING
    assert "store" in levels


@pytest.mark.parametrize(("is_installed", "start"), [(True, "systemctl enable --now"), (False, "edge run --settings")])
def test_next_steps_depend_on_installation_and_equipment(tmp_path: Path, *, is_installed: bool, start: str) -> None:
    plain = list(next_steps(Site("n", ("a",), ""), tmp_path, is_installed=is_installed))
    assert plain[0].startswith(start)
    devices = list(next_steps(Site("n", ("a",), "", equipment=(SPINDLE,)), tmp_path, is_installed=is_installed))
    assert "own.der" in devices[0]
    assert devices[2:] == plain
