"""The settings of equipment that is an OPC UA server."""

import msgspec
import pytest

from edge.config import OpcuaEquipmentSettings, Settings

SECTION = {"type_ids": ["work"], "url": "opc.tcp://h"}


@pytest.mark.parametrize("size", [0, 1000, 1 << 40])
def test_size_limit_of_a_message_has_bounds(size: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(SECTION | {"kind": "vision", "max_message_bytes": size}, OpcuaEquipmentSettings)


def test_conflict_of_certificates_names_its_keys() -> None:
    encrypted = msgspec.convert(SECTION | {"kind": "vision", "files": "on"}, OpcuaEquipmentSettings)
    assert [str(conflict).partition(":")[0] for conflict in encrypted.conflicts(Settings())] == [
        "files",
        "cert_file",
        "key_file",
        "trusted",
    ]
    clear = msgspec.structs.replace(encrypted, security="none", cert_file="a", files="off")
    assert [str(conflict).partition(":")[0] for conflict in clear.conflicts(Settings())] == ["security"]
