"""Defines one operation of the HTTP API: its path, its role, what it takes and what it does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from edge.features.page.caller import WebCaller
from edge.features.page.services import WebServices
from edge.model.role import Role

TEXT_QUERY: Final = {"text": "A part of the name; upper and lower case are the same."}


class Svg(Struct, frozen=True):
    """A picture as the answer to a request."""

    document: str


class ApiCall(Struct, frozen=True):
    """One request: its caller, the parts of its path, its query and its decoded body.

    A change that is sent again under its `id` is carried out once.
    """

    caller: WebCaller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    id: str = ""


class Download(Struct, frozen=True):
    """A file as the answer to a request."""

    content: bytes
    name: str
    media_type: str


Answer = Struct | Svg | Download
Execute = Callable[[WebServices, ApiCall], Awaitable[Answer]]


class ApiOperation(Struct, frozen=True):
    """One operation. `query` maps its parameters to their meaning; `body` and `answer` are types of the models."""

    method: str
    path: str
    summary: str
    role: Role
    answer: type[Answer]
    execute: Execute
    body: type[Struct] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
