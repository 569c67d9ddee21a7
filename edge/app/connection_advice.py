"""What a person does about each kind of reason why equipment is not connected."""

from collections.abc import Mapping
from typing import Final

from edge.model.equipment_connection import ConnectionFault

_SWITCH_ON: Final = "Switch it on and check its connection."
_ADVICE: Final[Mapping[str, str]] = {
    ConnectionFault.REFUSED: "Switch it on, and compare address and port with the settings: no program listens there.",
    ConnectionFault.NO_HOST: "Correct the name of its host in the settings, or the DNS of this computer.",
    ConnectionFault.UNREACHABLE: "Check cable, network and route to it.",
    ConnectionFault.SILENT: "Compare its address with the settings, and check that no firewall drops its packets.",
    ConnectionFault.CLOSED: "Check at the equipment why it closes the connection.",
    ConnectionFault.DECLINED: "Close the other client, allow one more at the equipment, or correct the login.",
    ConnectionFault.CERTIFICATE: "Exchange the certificates of both: docs/how-to/opcua-equipment.md.",
    ConnectionFault.PROTOCOL: "Compare kind, address and port with the settings: another protocol answers there.",
    ConnectionFault.WRONG_DEVICE: "Compare its address with the settings: another device answers there.",
    ConnectionFault.BROKER: "Check the connection to its broker.",
    ConnectionFault.OFFLINE: "Switch the equipment on: its broker is connected.",
    ConnectionFault.SETTINGS: "Correct its settings.",
}


def connection_advice(fault: str) -> str:
    """Return what to do about a kind of reason, by its value."""
    return _ADVICE.get(fault, _SWITCH_ON)
