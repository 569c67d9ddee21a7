"""Metrics are served on this host only, or not at all."""

from pathlib import Path

import pytest

from edge.config import SECTIONS, load_settings
from edge.foundation.errors import SettingsError


def listening(directory: Path, address: str) -> str:
    """Return where these settings have the gateway listen for monitoring."""
    file = directory / "edge.toml"
    file.write_text(f'[metrics]\nlisten = "{address}"\n')
    return load_settings(file, {}, SECTIONS).metrics.listen


@pytest.mark.parametrize("address", ["", "127.0.0.1:9464", "[::1]:9464", "localhost:9464", "127.0.0.2:0"])
def test_metrics_listen_accepts_loopback_addresses(tmp_path: Path, address: str) -> None:
    assert listening(tmp_path, address) == address


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("0.0.0.0:9464", "metrics.listen: every host of the network could read it; expected a loopback address"),
        ("gateway.plant:9464", "metrics.listen: every host of the network could read it"),
        ("[::]:9464", "metrics.listen: every host of the network could read it"),
        ("127.0.0.1", "metrics.listen: expected a loopback address and a port, as in 127.0.0.1:9464"),
        ("http://127.0.0.1:9464", "metrics.listen: expected a loopback address and a port"),
        ("127.0.0.1:99999", "metrics.listen: Port out of range"),
        ("[::1:9464", "metrics.listen: "),
    ],
)
def test_metrics_listen_refuses_other_addresses(tmp_path: Path, address: str, problem: str) -> None:
    with pytest.raises(SettingsError) as reported:
        listening(tmp_path, address)
    assert problem in str(reported.value)
