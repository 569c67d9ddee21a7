"""Browses the address space in bounded pieces: references by pages, browse paths with yields between their steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field  # noqa: TID251 - asyncua decodes dataclasses
from secrets import token_bytes

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace
from asyncua.ua.ua_binary import pack_uatype, struct_to_binary
from msgspec import Struct

from edge.opcua.binary import INT32, UINT32
from edge.opcua.time_slices import Turn

REFERENCES_PER_NODE = 500
REFERENCES_PER_ANSWER = 1000
CONTINUATION_POINTS = 50
"""Open continuation points of one session (OPC 10000-4, 7.9); the oldest of former requests make way for new ones."""
PATH_ELEMENTS = 64
"""Elements of one browse path; address spaces are less than that deep."""
PATH_TARGETS = 1000

_FIELDS = ("ReferenceTypeId", "IsForward", "NodeClass", "BrowseName", "DisplayName", "TypeDefinition")
"""The fields of a reference by their bit in the mask of a Browse request."""
_ALL = (1 << len(_FIELDS)) - 1
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_NULL = ua.NodeId()
_BYTES = ua.VariantType.ByteString
_ANY_TYPE = ua.NodeId(ua.ObjectIds.References)


@dataclass
class NodeToBrowse:
    """A BrowseDescription (OPC 10000-4, 5.9.2): with an unknown direction asyncua does not decode the request."""

    NodeId: ua.NodeId = _NULL
    BrowseDirection: ua.Int32 = 0
    ReferenceTypeId: ua.NodeId = _NULL
    IncludeSubtypes: ua.Boolean = True
    NodeClassMask: ua.UInt32 = 0
    ResultMask: ua.UInt32 = 0


@dataclass
class BrowseParameters:
    """The parameters of a Browse request."""

    View: ua.ViewDescription = field(default_factory=ua.ViewDescription)
    RequestedMaxReferencesPerNode: ua.UInt32 = 0
    NodesToBrowse: list[NodeToBrowse] = field(default_factory=list)


_DIRECTIONS = frozenset({ua.BrowseDirection.Forward, ua.BrowseDirection.Inverse, ua.BrowseDirection.Both})


class _Rest(Struct, frozen=True):
    """The remaining references of a continuation point, the page size and the fields that its client requested."""

    references: Sequence[ua.ReferenceDescription]
    page: int
    mask: int


class ReferenceTypes:
    """The subtypes of reference types; they do not change while the server runs."""

    def __init__(self, aspace: AddressSpace) -> None:
        self._aspace = aspace
        self._subtypes: dict[ua.NodeId, frozenset[ua.NodeId]] = {}

    def included(self, reference_type: ua.NodeId, *, with_subtypes: bool) -> frozenset[ua.NodeId] | None:
        """Return the types that a request for this type includes; None for all. Raises KeyError for an unknown type."""
        if reference_type in {_NULL, _ANY_TYPE}:
            return None
        if not with_subtypes:
            return frozenset({reference_type})
        if reference_type not in self._subtypes:
            self._subtypes[reference_type] = frozenset(self._lineage(reference_type))
        return self._subtypes[reference_type]

    def is_known(self, reference_type: ua.NodeId) -> bool:
        """Return whether this is a reference type."""
        if reference_type == _NULL:
            return True
        if reference_type not in self._aspace:
            return False
        held = self._aspace[reference_type].attributes[ua.AttributeIds.NodeClass].value
        return bool(held and held.Value and held.Value.Value == ua.NodeClass.ReferenceType)

    def _lineage(self, reference_type: ua.NodeId) -> Iterator[ua.NodeId]:
        yield reference_type
        for reference in self._aspace[reference_type].references:
            if reference.ReferenceTypeId == _HAS_SUBTYPE and reference.IsForward:
                yield from self._lineage(reference.NodeId)


class View:
    """The view of one session on the address space, with its continuation points."""

    def __init__(self, aspace: AddressSpace, types: ReferenceTypes) -> None:
        self._aspace = aspace
        self._types = types
        self._rests: dict[bytes, _Rest] = {}

    async def browse(self, params: BrowseParameters, turn: Turn) -> list[ua.BrowseResult]:
        """Return the references of nodes, REFERENCES_PER_ANSWER at most; continuation points hold the rest."""
        if params.View.ViewId != _NULL:
            raise ServiceError(ua.StatusCodes.BadViewIdUnknown)
        page = min(params.RequestedMaxReferencesPerNode or REFERENCES_PER_NODE, REFERENCES_PER_NODE)
        left, points = REFERENCES_PER_ANSWER, CONTINUATION_POINTS
        results = []
        for asked in params.NodesToBrowse:
            result = self._browse(asked, page, left, points)
            left -= len(result.References)
            points -= bool(result.ContinuationPoint)
            results.append(result)
            await turn.step()
        return results

    async def browse_next(self, params: ua.BrowseNextParameters, turn: Turn) -> list[ua.BrowseResult]:
        """Return the next references of continuation points, or release them."""
        left = REFERENCES_PER_ANSWER
        results = []
        for point in params.ContinuationPoints:
            rest = self._rests.pop(point or b"", None)
            if rest is None:
                results.append(_failed(ua.StatusCodes.BadContinuationPointInvalid))
            elif params.ReleaseContinuationPoints:
                results.append(ua.BrowseResult())
            elif not left:
                self._rests[point] = rest
                results.append(ua.BrowseResult(ContinuationPoint=point))
            else:
                results.append(self._page(rest, left))
                left -= len(results[-1].References)
            await turn.step()
        return results

    async def translate(self, path: ua.BrowsePath, turn: Turn) -> ua.BrowsePathResult:
        """Return the nodes that a browse path leads to."""
        elements = path.RelativePath.Elements or ()
        if not elements:
            return _no_targets(ua.StatusCodes.BadNothingToDo)
        if len(elements) > PATH_ELEMENTS:
            return _no_targets(ua.StatusCodes.BadQueryTooComplex)
        if not all(element.TargetName and element.TargetName.Name for element in elements):
            return _no_targets(ua.StatusCodes.BadBrowseNameInvalid)
        if path.StartingNode not in self._aspace:
            return _no_targets(ua.StatusCodes.BadNodeIdUnknown)
        current = [path.StartingNode]
        for element in elements:
            found: dict[ua.NodeId, None] = {}
            for node_id in current:
                found |= dict.fromkeys(self._below(node_id, element))
                await turn.step()
            if not found:
                return _no_targets(ua.StatusCodes.BadNoMatch)
            if len(found) > PATH_TARGETS:
                return _no_targets(ua.StatusCodes.BadTooManyMatches)
            current = list(found)
        targets = [ua.BrowsePathTarget(node_id, ua.Index(0xFFFFFFFF)) for node_id in current]
        return ua.BrowsePathResult(Targets=targets)

    def _browse(self, asked: NodeToBrowse, page: int, left: int, points: int) -> ua.BrowseResult:
        if asked.NodeId not in self._aspace:
            return _failed(ua.StatusCodes.BadNodeIdUnknown)
        if not self._types.is_known(asked.ReferenceTypeId):
            return _failed(ua.StatusCodes.BadReferenceTypeIdInvalid)
        if asked.BrowseDirection not in _DIRECTIONS:
            return _failed(ua.StatusCodes.BadBrowseDirectionInvalid)
        types = self._types.included(asked.ReferenceTypeId, with_subtypes=asked.IncludeSubtypes)
        references = [
            reference for reference in self._aspace[asked.NodeId].references if _is_asked(reference, asked, types)
        ]
        size = min(page, left)
        if references and (not size or (len(references) > size and not points)):
            # The answer is full, or has all points that the session may have; the client asks for this node again.
            return _failed(ua.StatusCodes.BadNoContinuationPoints)
        return self._page(_Rest(references, page, asked.ResultMask), left)

    def _page(self, rest: _Rest, left: int) -> ua.BrowseResult:
        size = min(rest.page, left)
        references = rest.references[:size]
        if rest.mask & _ALL != _ALL:
            references = [_masked(reference, rest.mask) for reference in references]
        result = ua.BrowseResult(References=list(references))
        if len(rest.references) > size:
            result.ContinuationPoint = token_bytes(16)
            self._rests[result.ContinuationPoint] = _Rest(rest.references[size:], rest.page, rest.mask)
            while len(self._rests) > CONTINUATION_POINTS:
                del self._rests[next(iter(self._rests))]
        return result

    def _below(self, node_id: ua.NodeId, element: ua.RelativePathElement) -> Iterator[ua.NodeId]:
        if node_id not in self._aspace:
            return
        types = None
        if element.ReferenceTypeId != _NULL:
            if not self._types.is_known(element.ReferenceTypeId):
                return
            types = self._types.included(element.ReferenceTypeId, with_subtypes=element.IncludeSubtypes)
        for item in self._aspace[node_id].references:
            is_named = item.IsForward != element.IsInverse and item.BrowseName == element.TargetName
            if is_named and (types is None or item.ReferenceTypeId in types):
                yield item.NodeId


def _is_asked(reference: ua.ReferenceDescription, asked: NodeToBrowse, types: frozenset[ua.NodeId] | None) -> bool:
    is_forward = asked.BrowseDirection == ua.BrowseDirection.Forward
    if asked.BrowseDirection != ua.BrowseDirection.Both and reference.IsForward != is_forward:
        return False
    if asked.NodeClassMask and not asked.NodeClassMask & reference.NodeClass:
        return False
    return types is None or reference.ReferenceTypeId in types


def _masked(reference: ua.ReferenceDescription, mask: int) -> ua.ReferenceDescription:
    """Return a reference with the requested fields only (OPC 10000-4, 5.9.2: resultMask)."""
    masked = ua.ReferenceDescription(NodeId=reference.NodeId, IsForward=False)
    for bit, name in enumerate(_FIELDS):
        if mask & 1 << bit:
            setattr(masked, name, getattr(reference, name))
    return masked


def _failed(code: int) -> ua.BrowseResult:
    return ua.BrowseResult(StatusCode=ua.StatusCode(code))


async def encode_results(results: Sequence[ua.BrowseResult], turn: Turn) -> list[bytes]:
    """Encode results in turns: a thousand references at once would hold the event loop for 15 ms."""
    encoded = []
    for result in results:
        parts = [UINT32.encode(result.StatusCode.value), pack_uatype(_BYTES, result.ContinuationPoint)]
        parts.append(INT32.encode(len(result.References)))
        for reference in result.References:
            parts.append(struct_to_binary(reference))
            await turn.step()
        encoded.append(b"".join(parts))
        await turn.step()
    return encoded


def _no_targets(code: int) -> ua.BrowsePathResult:
    return ua.BrowsePathResult(StatusCode=ua.StatusCode(code))
