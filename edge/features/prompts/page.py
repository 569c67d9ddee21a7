"""Prompts in the HTTP API and on the station page: list, picture, answer."""

import asyncio
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edge.app.page_part import ApiCall, ApiOperation, Download, PagePart, PageServices, Signature, StationAsk
from edge.features.prompts.answer import GivenAnswer, SignedAnswer
from edge.features.prompts.answering import Person, PromptAnswered, PromptRequest, Prompts, unknown_prompt
from edge.features.prompts.event_answers import codes_of
from edge.features.prompts.open_prompt import PromptList, public_prompt
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role

_SOURCE: Final = "urn:microdcs-edge:page"
_LARGEST_PICTURE: Final = 4 << 20


def _prompts_of(services: PageServices) -> Prompts | None:
    prompts: Prompts | None = services.ports.get("prompts")
    return prompts


def _require(services: PageServices, prompt: str) -> Prompts:
    if (prompts := _prompts_of(services)) is None:
        raise unknown_prompt(prompt)
    return prompts


async def _list(services: PageServices, call: ApiCall) -> PromptList:
    prompts, languages = _prompts_of(services), call.caller.languages
    found = prompts.open if prompts else ()
    return PromptList(prompts=tuple(public_prompt(prompt, languages) for prompt in found))


async def _picture(services: PageServices, call: ApiCall) -> Download:
    prompts = _require(services, call.path["prompt"])
    name = prompts.find(call.path["prompt"]).prompt.picture
    if not name or not prompts.pictures:
        raise _no_picture(name)
    return Download(
        await asyncio.to_thread(_read, Path(prompts.pictures, name)), name, mimetypes.guess_type(name)[0] or ""
    )


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > _LARGEST_PICTURE:
            raise Refused(
                "too_large",
                Text.of("the picture {name!r} is larger than {most} MiB", name=file.name, most=_LARGEST_PICTURE >> 20),
            )
        return file.read_bytes()
    except OSError:
        raise _no_picture(file.name) from None


def _no_picture(name: str) -> Refused:
    return Refused(
        "unknown_picture",
        Text.of("there is no picture {name!r}", name=name),
        "Put it into the folder of [prompts] pictures.",
    )


async def _sign(services: PageServices, call: ApiCall) -> PromptAnswered:
    """Answer as the person who signs, not as the one who has logged in."""
    signature = Signature(name=call.body.name, pin=call.body.pin, badge=call.body.badge)
    signer = await services.identify(call.caller, signature)
    caller = replace(call.caller, user=signer.user, role=signer.role)
    return await _answer_as(services, replace(call, caller=caller), signer.way)


async def _answer(services: PageServices, call: ApiCall) -> PromptAnswered:
    return await _answer_as(services, call, "")


async def _answer_as(services: PageServices, call: ApiCall, signed: str) -> PromptAnswered:
    prompt, caller = call.path["prompt"], call.caller
    prompts = _require(services, prompt)
    request = PromptRequest(
        prompt=prompt,
        given=GivenAnswer(choice=call.body.choice, values=call.body.values),
        person=Person(caller.user, caller.role, signed),
        source=_SOURCE,
        event_id=f"{caller.user}/{call.id}",
        scopes=prompts.scopes,
    )
    comment = f"signed by {signed}" if signed else ""
    try:
        if caller.at_panel:
            answered = await _answer_at_panel(services, prompts, request, caller.address)
        else:
            answered = await prompts.carry_out(request)
    except Refused as refusal:
        services.audit.called(caller, "prompts answer", prompt, comment, refusal.message)
        raise
    services.audit.called(caller, "prompts answer", f"{answered.job_order_id}/{answered.action}", comment)
    return answered


async def _answer_at_panel(
    services: PageServices, prompts: Prompts, request: PromptRequest, address: str
) -> PromptAnswered:
    """Answer a prompt, and refuse the badge of a person as a scanned value: the page takes it as the badge.

    A code that is not a badge ends the prompt. Where the answer is refused anyway a person may try one code after the
    other: badges are recognized there only as often as logins by badge are free. Raises Refused.
    """
    prompt = next((found for found in prompts.open if found.id == request.prompt), None)
    codes = [str(request.given.values.get(name, "")) for name in codes_of(prompt)] if prompt else []
    is_badge = Refused("is_badge", "this is the badge of a person, not a code.", "Scan the code that is asked for.")
    for code in codes:
        if await services.is_badge(code):
            request = replace(request, refusal=is_badge)
    try:
        return await prompts.carry_out(request)
    except Refused as refusal:
        if refusal is is_badge:
            raise
        for code in codes:
            if await services.recognizes_badge(code, address):
                raise is_badge from None
        raise


async def _asks(services: PageServices, languages: Sequence[str]) -> Sequence[StationAsk]:
    """Return what the cards of the station page ask."""
    prompts = _prompts_of(services)
    public = [public_prompt(prompt, languages) for prompt in prompts.open] if prompts else []
    return [
        StationAsk(prompt.job_order_id, prompt.title, "station-prompt.html", prompt, prompt.action, prompt.step)
        for prompt in public
    ]


_PROMPT: Final = "/prompts/{prompt}"

PAGE: Final = PagePart(
    (
        ApiOperation("GET", "/prompts", "List what people at the station are asked.", Role.OBSERVER, PromptList, _list),
        ApiOperation(
            "GET", f"{_PROMPT}/picture", "Return the picture of an open prompt.", Role.OBSERVER, Download, _picture
        ),
        ApiOperation(
            "POST", f"{_PROMPT}/answer", "Answer a prompt.", Role.OPERATOR, PromptAnswered, _answer, GivenAnswer
        ),
        ApiOperation(
            "POST",
            f"{_PROMPT}/sign",
            "Answer a prompt at a panel, signed by PIN or badge, with the role of the signer.",
            Role.OBSERVER,
            PromptAnswered,
            _sign,
            SignedAnswer,
        ),
    ),
    templates=Path(__file__).parent / "templates",
    asks=_asks,
)
