"""The namespaces of the address space; their indexes are the same after every start."""

import socket
from datetime import UTC, datetime
from enum import IntEnum

UA_URI = "http://opcfoundation.org/UA/"
PRODUCT_URI = "urn:microdcs-edge"
TYPES_URI = "urn:microdcs-edge:types"
TYPES_VERSION = "1.6.0"
TYPES_PUBLISHED = datetime(2026, 11, 27, tzinfo=UTC)
"""The date of TYPES_VERSION; both change with every change of a type."""


class Namespace(IntEnum):
    """The namespace indexes: 1 is the application (OPC 10000-5, 6.3.1), 2 to 6 are official node sets."""

    UA = 0
    APPLICATION = 1
    DI = 2
    IA = 3
    MACHINERY = 4
    ISA95 = 5
    JOBS = 6
    TYPES = 7
    MACHINES = 8
    CHARTS = 9
    ALARMS = 10
    """Alarms, tags and prompts; only with telemetry or prompts."""


OFFICIAL_URI = {
    Namespace.DI: UA_URI + "DI/",
    Namespace.IA: UA_URI + "IA/",
    Namespace.MACHINERY: UA_URI + "Machinery/",
    Namespace.ISA95: UA_URI + "ISA95-JOBCONTROL_V2/",
    Namespace.JOBS: UA_URI + "Machinery/Jobs/",
}


def application_uri(gateway: str) -> str:
    """Return the application URI of this server; it contains the host name, as two gateways may have the same name."""
    return f"urn:{socket.gethostname()}:microdcs-edge:{gateway}"


def machines_uri(gateway: str) -> str:
    """Return the URI of the namespace of this gateway's machines."""
    return f"{application_uri(gateway)}:machines"


def charts_uri(gateway: str) -> str:
    """Return the URI of the namespace of this gateway's running charts, whose nodes are added and removed."""
    return f"{application_uri(gateway)}:charts"


def alarms_uri(store_id: str) -> str:
    """Return the URI of the namespace of alarms, tags and prompts: the same for every gateway on a store only."""
    return f"urn:microdcs-edge:store:{store_id}"
