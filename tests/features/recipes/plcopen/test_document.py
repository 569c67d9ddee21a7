"""The XML of a PLC tool is read within bounds, without document types and entities."""

import pytest

from edge.features.recipes.plcopen.document import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, read_document, walk
from edge.features.recipes.plcopen.finding import PlcFileError
from tests.features.recipes.plcopen.drawn import NAMESPACE, chart, initial, project


def refusal(data: bytes) -> str:
    with pytest.raises(PlcFileError) as caught:
        read_document(data)
    return caught.value.finding.stated("en")


def nested(depth: int) -> bytes:
    return f'<project xmlns="{NAMESPACE}">{"<a>" * depth}{"</a>" * depth}</project>'.encode()


def filled(count: int) -> bytes:
    return f'<project xmlns="{NAMESPACE}">{"<a/>" * count}</project>'.encode()


def test_a_document_type_and_entities_are_refused_unexpanded() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE lolz [<!ENTITY e0 "lol">{entities}]><project>&e11;</project>'
    assert refusal(bomb.encode()) == "line 2: a document type (DTD) is refused"
    assert "DTD" in refusal(b'<!DOCTYPE p SYSTEM "file:///etc/passwd"><p/>')
    assert "undefined entity" in refusal(f'<project xmlns="{NAMESPACE}">&x;</project>'.encode())


def test_a_file_within_the_bounds_is_read() -> None:
    assert len(list(walk(read_document(filled(MAX_ELEMENTS - 1))))) == MAX_ELEMENTS
    assert len(list(walk(read_document(nested(MAX_DEPTH - 1))))) == MAX_DEPTH


def test_a_file_beyond_a_bound_is_refused_by_its_name() -> None:
    assert f"more than {MAX_ELEMENTS} elements" in refusal(filled(MAX_ELEMENTS))
    assert f"nested deeper than {MAX_DEPTH}" in refusal(nested(MAX_DEPTH))
    assert f"at most {MAX_BYTES} are read" in refusal(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("data", [b"", b" \n", b"\x00", b"{}", b"<project", b"\xff\xfe", b"\xef\xbb\xbf", b"<a/><b/>"])
def test_a_file_that_is_not_xml_is_refused(data: bytes) -> None:
    assert refusal(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_utf_8_and_utf_16_are_read(encoding: str) -> None:
    text = chart(initial(1, "Prüfen")).decode()
    declared = text.replace('encoding="utf-8"', f'encoding="{encoding[:6].rstrip("-")}"')
    names = [element.get("name") for element in walk(read_document(declared.encode(encoding)))]
    assert "Prüfen" in names


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "us-ascii", "utf-7", "utf-32", "klingon"])
def test_another_encoding_is_refused_by_its_name(encoding: str) -> None:
    data = f'<?xml version="1.0" encoding="{encoding}"?><project/>'.encode()
    assert refusal(data) == f"line 1: encoding '{encoding}'; UTF-8 and UTF-16 are read"


def test_a_file_of_another_format_is_refused_by_its_name() -> None:
    assert "IEC 61131-10" in refusal(b'<Project xmlns="www.iec.ch/public/TC65SC65BWG7TF10"/>')
    assert "http://www.plcopen.org/xml/tc6.xsd" in refusal(project(namespace="http://www.plcopen.org/xml/tc6.xsd"))
    assert "'svg'" in refusal(b"<svg/>")
    assert "'pou'" in refusal(f'<pou xmlns="{NAMESPACE}"/>'.encode())


def test_a_prefix_means_the_namespace_of_its_place() -> None:
    inner = '<b:pou xmlns:b="urn:other" name="Other"/><a:pou name="Main"/>'
    root = read_document(f'<a:project xmlns:a="{NAMESPACE}">{inner}</a:project>'.encode())
    assert [child.get("name") for child in root.all("pou")] == ["Main"]


def test_a_long_namespace_is_not_copied_to_each_element() -> None:
    data = f'<project xmlns="{"n" * 1_000_000}">{"<a/>" * 40_000}</project>'.encode()
    assert "not a project" in refusal(data)
