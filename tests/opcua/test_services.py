"""Every service of the table decodes its own parameters."""

from asyncua import ua

from edge.opcua.services import SERVICES


def test_parameters_belong_to_the_service() -> None:
    for service_id, service in SERVICES.items():
        name = ua.ObjectIdNames[service_id.Identifier].removesuffix("Request_Encoding_DefaultBinary")
        assert service.parameters.__name__ == f"{name}Parameters"
