"""The settings of a tightening controller with OPC UA."""

import msgspec

from edge.features.joining.settings import IjtSettings


def test_defaults_of_a_controller_are_encryption_and_the_lock_where_it_can() -> None:
    section = {"kind": "ijt", "type_ids": ["work"], "url": "opc.tcp://h"}
    settings = msgspec.convert(section, IjtSettings)
    assert (settings.security, settings.lock, settings.max_message_bytes) == ("encrypted", "auto", 4 << 20)
