"""Reads what a person decides about a run from a call of the MES or a sidecar."""

from edge.model.isa95 import InterveneCall, ResolveCall
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, Resolution, Resolve


def resolve_signal(call: ResolveCall) -> Resolve:
    """Return the decision about an unknown outcome."""
    return Resolve(call.action, Resolution(call.resolution), call.data, call.reason, call.by)


def intervene_signal(call: InterveneCall) -> Intervene:
    """Return the intervention."""
    kind = Intervention(call.kind)
    return Intervene(kind, call.action, call.step, call.target, call.data, call.reason, call.by)
