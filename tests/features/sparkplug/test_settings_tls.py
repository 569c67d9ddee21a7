"""The certificates of the edge node are among the files of TLS."""

from pathlib import Path

from edge.app.gateway_files import examine_secrets
from edge.config import Settings
from edge.config.hosts import broker_conflicts
from edge.features.sparkplug.settings import SparkplugSettings


def test_certificate_of_a_feature_is_among_them() -> None:
    """A backup was without that of `[sparkplug]`."""
    sparkplug = SparkplugSettings(url="mqtts://h", cert_file="/s.pem")
    assert Settings(sections={"sparkplug": sparkplug}).tls_files == {"sparkplug.cert_file": Path("/s.pem")}


def test_certificate_needs_its_key_and_encryption() -> None:
    assert list(broker_conflicts(SparkplugSettings(url="mqtt://a", cert_file="c"))) == [
        "cert_file, key_file: the one needs the other",
        "url: certificates are given, but mqtt: does not use them; expected mqtts:",
    ]


def test_password_in_clear_text_to_a_further_broker_is_a_finding(tmp_path: Path) -> None:
    sparkplug = SparkplugSettings(url="mqtt://localhost", further_urls=("mqtt://b.plant",), password="p")
    (warning,) = examine_secrets(Settings(sections={"sparkplug": sparkplug}), tmp_path / "edge.toml")
    assert warning.startswith("sparkplug: ")
    assert "in clear text" in warning
