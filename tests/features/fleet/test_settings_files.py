"""A backup keeps the public keys of administrators, and no other file of their folder."""

from pathlib import Path

from edge.app.gateway_files import locate_files
from edge.config import Settings
from edge.features.fleet.settings import FleetSettings


def test_backup_name_of_each_public_key_leads_to_its_path(tmp_path: Path) -> None:
    for name in ("a.jwk", "private-key-left-here.pem"):
        (tmp_path / name).touch()
    at = locate_files(Settings(sections={"fleet": FleetSettings(keys=str(tmp_path))}), tmp_path / "edge.toml")
    existing = dict(at.existing())
    assert {name: path for name, path in existing.items() if name.startswith("fleet/")} == {
        "fleet/keys/a.jwk": tmp_path / "a.jwk"
    }
    assert at.of("fleet/keys/a.jwk") == tmp_path / "a.jwk"
