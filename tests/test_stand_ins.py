"""A stand-in spares the import of a module until its first use; each test of a library runs in its own process."""

import subprocess
import sys
from pathlib import Path

import pytest

from edge.stand_ins import stand_in


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("import heavy_package.part", "heavy_package.part.value()"),
        ("from heavy_package import part", "part.value()"),
        ("import heavy_package.part as part", "part.value()"),
    ],
)
def test_module_is_imported_at_the_first_use_of_its_stand_in(tmp_path: Path, statement: str, use: str) -> None:
    folder = tmp_path / "heavy_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "part.py").write_text("print('imported')\ndef value():\n    return 7\n")
    prepared = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom edge.stand_ins import stand_in\n"
    within = f"with stand_in('heavy_package.part'):\n    {statement}\n"
    twice = f"print('before')\nprint({use})\nprint({use})"
    assert run(f"{prepared}{within}{twice}") == "before\nimported\n7\n7\n"
    prepared += "import heavy_package\n"
    assert run(f"{prepared}{within}{twice}") == "before\nimported\n7\n7\n"
    assert run(f"{prepared}{within}    print({use})\nprint({use})") == "imported\n7\n7\n"
    assert run(f"{prepared}{within}import heavy_package.part as own\nprint(own.value())") == "imported\n7\n"


def test_imported_module_gets_no_stand_in() -> None:
    import json.decoder

    with stand_in("json.decoder", JSONDecoder=None):
        from json.decoder import JSONDecoder
    assert JSONDecoder is json.decoder.JSONDecoder is not None


def test_unknown_module_is_reported_at_its_use() -> None:
    with stand_in("no_such_module_of_anybody"):
        import no_such_module_of_anybody  # type: ignore[import-not-found]
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anybody"):
        no_such_module_of_anybody.value()


def test_paho_finds_a_proxy_of_the_environment_as_without_the_stand_in() -> None:
    socks = "class socks: HTTP, SOCKS4, SOCKS5 = 1, 2, 3\nclient.socks = socks\n"
    proxy = "made = client.Client(client.CallbackAPIVersion.VERSION2)\nmade._host = 'broker'\nprint(made._get_proxy())"
    code = f"import os\nos.environ['mqtt_proxy'] = 'http://proxy:3128'\nfrom paho.mqtt import client\n{socks}{proxy}"
    found = run(code)
    assert "'proxy'" in found
    assert run(f"from edge.stand_ins import import_paho\nimport_paho()\n{code}") == found


def test_asyncua_reads_dates_of_node_sets_as_without_the_stand_in() -> None:
    code = (
        "from asyncua import ua\nfrom asyncua.common.ua_utils import string_to_val\n"
        "print(string_to_val('2026-11-23T10:00:00Z', ua.VariantType.DateTime))"
    )
    assert run(f"from edge.opcua.generated_structures import import_asyncua\nimport_asyncua()\n{code}") == run(code)


NODE_SET = """
import asyncio, asyncua
XML = (
    '<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd"><UAObject NodeId="i=90001"'
    ' BrowseName="Tank"><DisplayName>Tank</DisplayName><References><Reference ReferenceType="Organizes"'
    ' IsForward="false">i=85</Reference></References></UAObject></UANodeSet>'
)
async def names():
    server = asyncua.Server()
    await server.init()
    await server.import_xml(xmlstring=XML)
    print([(await each.read_browse_name()).Name for each in await server.nodes.objects.get_children()])
asyncio.run(names())
"""


@pytest.mark.slow
def test_asyncua_imports_a_node_set_as_without_the_stand_in() -> None:
    found = run(f"from edge.opcua.generated_structures import import_asyncua\nimport_asyncua()\n{NODE_SET}")
    assert "'Tank'" in found
    assert found == run(NODE_SET)


def test_mail_address_of_a_certificate_is_parsed_as_without_the_stand_in() -> None:
    code = (
        "from cryptography import x509\nprint(x509.RFC822Name('a@example.com'))\n"
        "try:\n    x509.RFC822Name('A <a@example.com>')\nexcept ValueError as error:\n    print(error)"
    )
    assert run(f"from edge.opcua.generated_structures import import_asyncua\nimport_asyncua()\n{code}") == run(code)
