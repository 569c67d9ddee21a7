"""The settings of equipment that is an OPC UA server."""

import msgspec
import pytest

from edge.config import IjtSettings, Settings, VisionSettings

SECTION = {"type_ids": ["work"], "url": "opc.tcp://h"}


def test_defaults_of_a_controller_are_encryption_and_the_lock_where_it_can() -> None:
    settings = msgspec.convert(SECTION | {"kind": "ijt"}, IjtSettings)
    assert (settings.security, settings.lock, settings.max_message_bytes) == ("encrypted", "auto", 4 << 20)


@pytest.mark.parametrize("size", [0, 1000, 1 << 40])
def test_size_limit_of_a_message_has_bounds(size: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(SECTION | {"kind": "vision", "max_message_bytes": size}, VisionSettings)


def test_conflict_of_certificates_names_its_keys() -> None:
    encrypted = msgspec.convert(SECTION | {"kind": "vision", "files": "on"}, VisionSettings)
    assert [each.partition(":")[0] for each in encrypted.conflicts(Settings())] == [
        "files",
        "cert_file",
        "key_file",
        "trusted",
    ]
    clear = msgspec.structs.replace(encrypted, security="none", cert_file="a", files="off")
    assert [each.partition(":")[0] for each in clear.conflicts(Settings())] == ["security"]
