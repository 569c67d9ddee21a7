"""Reads the XML of a PLC tool into a tree, within bounds.

The parser is expat of the standard library. A document type or an entity is refused when it is declared: nothing is
expanded and nothing is loaded. Namespaces are resolved here: expat would copy the whole namespace to each name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn
from xml.parsers import expat

from msgspec import Struct

from edge.features.recipes.plcopen.finding import PlcFileError, PlcFinding, PlcPlace, cut
from edge.foundation.text import Text

MAX_BYTES: Final = 2 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_ELEMENTS: Final = 50_000

_TC6: Final = frozenset({"http://www.plcopen.org/xml/tc6_0200", "http://www.plcopen.org/xml/tc6_0201"})
_EDITION_10: Final = "TC65SC65BWG7TF10"
"""A part of the namespace of IEC 61131-10."""
_ENCODINGS: Final = frozenset({"utf-8", "utf-16", "utf-16le", "utf-16be"})


class Element(Struct):
    """An element: its name without prefix, its attributes, and texts and elements in their order.

    `is_tc6` says whether it is of the namespace of TC6 XML.
    """

    tag: str
    is_tc6: bool
    attributes: dict[str, str]
    line: int
    content: list[str | Element]

    @property
    def children(self) -> Iterator[Element]:
        """Yield the elements directly below."""
        return (part for part in self.content if isinstance(part, Element))

    def all(self, tag: str) -> Iterator[Element]:
        """Yield the elements of TC6 XML with a name directly below."""
        return (child for child in self.children if child.tag == tag and child.is_tc6)

    def one(self, *path: str) -> Element | None:
        """Return the first element at a path of names, or None."""
        place: Element | None = self
        for tag in path:
            place = next(place.all(tag), None) if place is not None else None
        return place

    def get(self, name: str) -> str:
        """Return an attribute without surrounding blanks; an empty text without it."""
        return self.attributes.get(name, "").strip()

    def is_set(self, name: str) -> bool:
        """Return whether an attribute is true (xsd:boolean)."""
        return self.get(name).lower() in {"true", "1"}

    @property
    def text(self) -> str:
        """Return all text within, paragraphs (`p`, `br`) on lines of their own."""
        parts: list[str] = []
        stack: list[str | Element] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                parts.append(part)
                continue
            if part.tag in {"p", "br"} and parts:
                parts.append("\n")
            stack += reversed(part.content)
        return "".join(parts)


def walk(root: Element) -> Iterator[Element]:
    """Yield an element and all below it, in the order of the document."""
    stack = [root]
    while stack:
        element = stack.pop()
        yield element
        stack += reversed([*element.children])


def read_document(data: bytes) -> Element:
    """Parse a file and return its `project`. Raises PlcFileError where it is not TC6 XML within the bounds."""
    if len(data) > MAX_BYTES:
        _refuse(Text.of("the file has {size} bytes, at most {limit} are read", size=len(data), limit=MAX_BYTES))
    if not data.strip():
        _refuse(Text.of("the file is empty"))
    builder = _Builder()
    parser = expat.ParserCreate()
    builder.attach(parser)
    try:
        parser.Parse(data, True)  # noqa: FBT003
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error.code))
        _refuse(Text.of("not XML: {reason}", reason=reason), error.lineno)
    except (ValueError, LookupError) as error:
        # Python reports an encoding that it does not have this way.
        _refuse(Text.of("not XML: {reason}", reason=error), 1)
    return _project(builder)


def _project(builder: _Builder) -> Element:
    root, namespace = builder.root, builder.namespace
    if root is None:
        _refuse(Text.of("the file is empty"))
    if root.tag.lower() == "project" and _EDITION_10 in namespace:
        _refuse(Text.of("a file of IEC 61131-10; export it as PLCopen TC6 XML 2.01"), root.line)
    if root.tag != "project" or not root.is_tc6:
        _refuse(
            Text.of(
                "not a project of PLCopen TC6 XML 2.0 or 2.01: the file begins with {tag!r} of namespace {namespace!r}",
                tag=cut(root.tag),
                namespace=cut(namespace),
            ),
            root.line,
        )
    return root


def _refuse(text: Text, line: int = 0) -> NoReturn:
    raise PlcFileError(PlcFinding(PlcPlace(line), text))


class _Builder:
    """Builds the tree from the events of the parser."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self.namespace = ""
        self._parser: expat.XMLParserType | None = None
        self._open: list[Element] = []
        self._scopes: list[dict[str, str]] = []
        self._count = 0

    def attach(self, parser: expat.XMLParserType) -> None:
        """Connect the parser with this builder."""
        self._parser = parser
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.XmlDeclHandler = self._declared
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber if self._parser is not None else 0

    def _declared(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            _refuse(Text.of("encoding {encoding!r}; UTF-8 and UTF-16 are read", encoding=cut(encoding)), 1)

    def _doctype(self, *_: object) -> None:
        _refuse(Text.of("a document type (DTD) is refused"), self._line)

    def _entity(self, *_: object) -> None:
        _refuse(Text.of("an entity is refused"), self._line)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS:
            _refuse(Text.of("more than {limit} elements", limit=MAX_ELEMENTS), self._line)
        if len(self._open) >= MAX_DEPTH:
            _refuse(Text.of("elements nested deeper than {limit}", limit=MAX_DEPTH), self._line)
        scope = {key[6:]: value for key, value in attributes.items() if re.fullmatch(r"xmlns(:.*)?", key)}
        self._scopes.append(scope)
        prefix, _, tag = name.rpartition(":")
        namespace = _resolve(self._scopes, prefix)
        element = Element(tag, namespace in _TC6, attributes, self._line, [])
        if self._open:
            self._open[-1].content.append(element)
        else:
            self.root, self.namespace = element, namespace
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()
        self._scopes.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].content.append(text)


def _resolve(scopes: Sequence[dict[str, str]], prefix: str) -> str:
    return next((scope[prefix] for scope in reversed(scopes) if prefix in scope), "")
