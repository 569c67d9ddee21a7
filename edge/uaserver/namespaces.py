"""The namespaces of the address space, at indexes that stay the same over every start."""

import socket
from datetime import UTC, datetime
from enum import IntEnum

UA_URI = "http://opcfoundation.org/UA/"
TYPES_URI = "urn:microdcs-edge:types"
TYPES_VERSION = "1.2.0"
TYPES_PUBLISHED = datetime(2026, 11, 22, tzinfo=UTC)
"""Both change when a type does."""


class Namespace(IntEnum):
    """Indexes. 1 is the application's (OPC 10000-5, 6.3.1); 2 to 6 are those of official node sets."""

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


OFFICIAL_URI = {
    Namespace.DI: UA_URI + "DI/",
    Namespace.IA: UA_URI + "IA/",
    Namespace.MACHINERY: UA_URI + "Machinery/",
    Namespace.ISA95: UA_URI + "ISA95-JOBCONTROL_V2/",
    Namespace.JOBS: UA_URI + "Machinery/Jobs/",
}


def application_uri(gateway: str) -> str:
    """Return this server for the whole plant, also where every gateway bears the same name."""
    return f"urn:{socket.gethostname()}:microdcs-edge:{gateway}"


def machines_uri(gateway: str) -> str:
    """Return the namespace of this gateway's machines."""
    return f"{application_uri(gateway)}:machines"


def charts_uri(gateway: str) -> str:
    """Return the namespace of this gateway's running charts, whose nodes come and go."""
    return f"{application_uri(gateway)}:charts"
