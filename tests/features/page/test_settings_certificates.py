"""The certificate of the page is that of the OPC UA server, unless it has its own."""

from pathlib import Path

from edge.app.certificate_lifetimes import certificates_of
from edge.config import OpcuaSettings, Settings
from edge.features.page.settings import WebSettings
from edge.model.finding import public_form
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri


def test_certificate_of_the_page_alone_is_examined(tmp_path: Path) -> None:
    opcua = OpcuaSettings(endpoint="", pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"))
    certificates.renew(tmp_path / "pki", application_uri("edge"), ["localhost"])
    web = WebSettings(listen="tls://192.0.2.9:8443")
    (finding,) = map(public_form, certificates_of(Settings(opcua=opcua, sections={"web": web})))
    assert finding.found == "it does not name 192.0.2.9"
