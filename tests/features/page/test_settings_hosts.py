"""The certificate names the hosts at which the page listens."""

from edge.config import OpcuaSettings, Settings
from edge.features.page.settings import WebSettings
from edge.uaserver import certificates


def test_reachable_hosts_include_the_page_and_those_of_the_settings() -> None:
    opcua = OpcuaSettings(endpoint="", hosts=("line.example.com",))
    settings = Settings(opcua=opcua, sections={"web": WebSettings(listen="tls://192.0.2.9:8443")})
    listening = tuple(certificates.listening_hosts(settings))
    assert listening == ("192.0.2.9",)
    assert list(certificates.reachable_hosts(opcua, *listening)) == ["line.example.com", "192.0.2.9"]
    own_one = WebSettings(listen="tls://192.0.2.9:8443", cert_file="a", key_file="b")
    assert list(certificates.listening_hosts(Settings(opcua=opcua, sections={"web": own_one}))) == []
