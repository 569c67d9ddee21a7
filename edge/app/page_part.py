"""What a feature adds to the station page and the HTTP API: operations, pages with their templates, and links.

A feature names its part as `page` in its declaration. It is the same whether the feature is on or not: its operations
find out by `PageServices.ports`, and refuse or return nothing where it is off.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from msgspec import Meta, Struct, field

from edge.access.web_audit import WebAudit, WebCaller
from edge.foundation.instant import Clock
from edge.model.user import Role
from edge.store.client import Store

TEXT_QUERY: Final = {"text": "A part of the name; upper and lower case are the same."}


class Signature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a person is known at a panel: a name with its PIN, or the code of a badge."""

    name: Annotated[str, Meta(max_length=64)] = ""
    pin: Annotated[str, Meta(max_length=8)] = ""
    badge: Annotated[str, Meta(max_length=128)] = ""


class Signer(Struct, frozen=True):
    """A person known by a signature; `way` is `PIN` or `badge`."""

    user: str
    role: Role
    way: str


Identify: TypeAlias = Callable[[WebCaller, Signature], Awaitable[Signer]]
"""Returns who signs at the panel of a caller. Raises Denied for a wrong signature, and away from a panel."""


class PageServices(Struct, frozen=True):
    """What operations and pages of features work with; `notify` reports a changed subject to open pages.

    `is_badge` returns whether a code is the badge of a person: for one that becomes a value otherwise.
    `recognizes_badge` returns the same about a code that was read at the address of a panel for nothing, until so many
    were unknown that badges would wait there.
    """

    store: Store
    ports: Mapping[str, Any]
    audit: WebAudit
    clock: Clock
    notify: Callable[[str], None]
    identify: Identify
    is_badge: Callable[[str], Awaitable[bool]]
    recognizes_badge: Callable[[str, str], Awaitable[bool]]


class Svg(Struct, frozen=True):
    """A picture as the answer to a request."""

    document: str


class Download(Struct, frozen=True):
    """A file as the answer to a request."""

    content: bytes
    name: str
    media_type: str


class Streamed(Struct, frozen=True):
    """A file as the answer to a request, made piece by piece in a thread: few of them are in memory."""

    pieces: Iterator[bytes]
    name: str
    media_type: str


class StreamedArchive(Streamed, frozen=True):
    """A gzip file, read piece by piece in a thread."""


class Upload(Struct, frozen=True):
    """A gzip file as the body of a request, of bounded size, as it arrives."""

    pieces: AsyncIterator[bytes]


class ApiCall(Struct, frozen=True):
    """One request: its caller, the parts of its path, its query and its decoded body.

    A change that is sent again under its `id` is carried out once.
    """

    caller: WebCaller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    id: str = ""


Answer: TypeAlias = Struct | Svg | Download | Streamed
Execute: TypeAlias = Callable[[Any, ApiCall], Awaitable[Answer]]
"""Executes an operation with the services: for a feature they are `PageServices`."""


class ApiOperation(Struct, frozen=True):
    """One operation. `query` maps its parameters to their meaning; `body` and `answer` are types of the models.

    `changes` is false for a POST that only reads, with a body that has no place in an address.
    """

    method: str
    path: str
    summary: str
    role: Role
    answer: type[Answer]
    execute: Execute
    body: type[Struct] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    changes: bool = True


PageData: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a template, and its values."""
Render: TypeAlias = Callable[[Any, WebCaller, Mapping[str, str]], Awaitable[PageData]]
"""Reads the data of a page with the services, for a caller, by the query of its address."""


class StationAsk(Struct, frozen=True):
    """What is asked of people at the station about a job, or about none: drawn on its card by a template.

    The template finds `data` as `ask`, the role of the reader as `may_control`, and its labels as `t`. `title` says in
    short what is asked. `action` of `step` waits for the answer.
    """

    job_id: str
    title: str
    template: str
    data: Any
    action: str = ""
    step: str = ""


class AdminLink(NamedTuple):
    """A link to a page of administration: its address, the key of its text, and the lowest role that may open it."""

    address: str
    key: str
    role: str


class PagePart(Struct, frozen=True):
    """The part of a feature; `templates` is the folder of those that its pages name."""

    operations: Sequence[ApiOperation]
    pages: Mapping[str, Render] = {}
    """Its pages by their address."""
    links: Mapping[str, str] = {}
    """What leads to its pages from all others: the key of the text by the address."""
    templates: Path | None = None
    static: Path | None = None
    """The folder of its scripts and styles: `{{ static.FEATURE }}/NAME` in a template."""
    asks: Callable[[Any, Sequence[str]], Awaitable[Sequence[StationAsk]]] | None = None
    """Reads what it asks of people at the station with the services, in the languages of a reader."""
    administration: Sequence[AdminLink] = ()
    """What leads to its pages from the page of the gateway."""
    manual: Mapping[str, str] = {}
    """The page of the manual about each of its pages: its name below docs, as `how-to/results`, a heading after `#`."""
    personal: frozenset[str] = frozenset()
    """The addresses of its pages that differ from person to person; the others differ by role, and are shared."""
    additions: Mapping[str, Render] = {}
    """What it adds to pages of others by their address: a template that finds its values as `addition`."""
