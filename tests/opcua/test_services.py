"""Every service of the table decodes its own parameters."""

from asyncua import ua

from edge.opcua.services import SERVICES


def test_service_has_its_own_parameters() -> None:
    for service_id, service in SERVICES.items():
        name = ua.ObjectIdNames[service_id.Identifier].removesuffix("Request_Encoding_DefaultBinary")
        assert service.parameters.__name__ == f"{name}Parameters"
