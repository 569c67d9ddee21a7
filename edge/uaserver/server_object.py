"""Fills the Server object: its capabilities, clock, and diagnostics of sessions and subscriptions (OPC 10000-5, 6.3).

Clock and diagnostics are computed when a client reads them, the diagnostics at most once per second.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from asyncua import ua
from asyncua.ua.ua_binary import extensionobject_to_binary

import edge
from edge.access.localization import known_languages
from edge.foundation.ticks import next_tick
from edge.model.user import Role
from edge.opcua import diagnostics, limits
from edge.opcua.access import Caller
from edge.opcua.answer_encoding import shared_array
from edge.opcua.server_channel import ServerChannel
from edge.opcua.server_core import ServerCore
from edge.opcua.view_service import CONTINUATION_POINTS
from edge.uaserver.live_list import notify_all

_INTERVAL_S = 1.0
"""Lifetime of cached diagnostics, and interval of the notifications of subscribers."""

_I, T = ua.ObjectIds, ua.VariantType

PROFILES = (
    "http://opcfoundation.org/UA-Profile/Server/EmbeddedUA2017",
    "http://opcfoundation.org/UA-Profile/Server/Methods",
    "http://opcfoundation.org/UA-Profile/Machinery/Jobs/Server/Base",
)
"""The profiles whose services and nodes this server provides; none is certified."""

_STATUS = ua.NodeId(_I.Server_ServerStatus)
_CURRENT_TIME = ua.NodeId(_I.Server_ServerStatus_CurrentTime)
_SUMMARY = _I.Server_ServerDiagnostics_ServerDiagnosticsSummary
_SESSIONS = ua.NodeId(_I.Server_ServerDiagnostics_SessionsDiagnosticsSummary_SessionDiagnosticsArray)
_SECURITY = ua.NodeId(_I.Server_ServerDiagnostics_SessionsDiagnosticsSummary_SessionSecurityDiagnosticsArray)
_SUBSCRIPTIONS = ua.NodeId(_I.Server_ServerDiagnostics_SubscriptionDiagnosticsArray)
_OF_ENGINEERS = frozenset({_SESSIONS, _SUBSCRIPTIONS, _SECURITY})


def build_date() -> datetime:
    """Return the build date of the program: the modification time of the file that contains its version."""
    return datetime.fromtimestamp(int(Path(edge.__file__).stat().st_mtime), UTC)


async def show_server(core: ServerCore) -> None:
    """Write the constant values of the Server object; compute the diagnostics on every read by a client."""
    for node, value in _fixed_values(core.limits).items():
        await core.write_attribute_value(ua.NodeId(node), ua.DataValue(value))
    enabled = core.aspace[ua.NodeId(_I.Server_ServerDiagnostics_EnabledFlag)].attributes
    for attribute in (ua.AttributeIds.AccessLevel, ua.AttributeIds.UserAccessLevel):
        enabled[attribute].value = ua.DataValue(ua.Variant(1 << ua.AccessLevel.CurrentRead, T.Byte))
    for node, read in _diagnostics(core).items():
        core.aspace.set_attribute_value_callback(node, ua.AttributeIds.Value, _Cached(read).read)
    core.read_checks.append(_may_read)


def show_clock(core: ServerCore) -> None:
    """Compute ServerStatus and CurrentTime on every read by a client; the server must have been started."""
    status: ua.ServerStatusDataType = core.aspace[_STATUS].attributes[ua.AttributeIds.Value].value.Value.Value

    def read(node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now = datetime.now(UTC)
        shown = ua.Variant(now, T.DateTime) if node == _CURRENT_TIME else ua.Variant(replace(status, CurrentTime=now))
        return ua.DataValue(shown, SourceTimestamp=now, ServerTimestamp=now)

    for node in (_STATUS, _CURRENT_TIME):
        core.aspace.set_attribute_value_callback(node, ua.AttributeIds.Value, read)


async def notify_subscribers(core: ServerCore) -> None:
    """Publish clock and diagnostics to their subscribers, every second, until cancelled."""
    shown = (_STATUS, _CURRENT_TIME, *_diagnostics(core))
    watched = [(node, core.aspace[node].attributes[ua.AttributeIds.Value]) for node in shown]
    while True:
        await next_tick(_INTERVAL_S)
        for node, held in watched:
            if held.datachange_callbacks:
                await notify_all(held.datachange_callbacks, held.value_callback(node, ua.AttributeIds.Value))


def _fixed_values(own: limits.ServerLimits) -> Mapping[int, ua.Variant]:
    counts = {
        _I.Server_ServerCapabilities_MaxBrowseContinuationPoints: (CONTINUATION_POINTS, T.UInt16),
        _I.Server_ServerCapabilities_MaxQueryContinuationPoints: (0, T.UInt16),
        _I.Server_ServerCapabilities_MaxHistoryContinuationPoints: (0, T.UInt16),
        _I.Server_ServerCapabilities_MaxArrayLength: (limits.REQUEST_BYTES, T.UInt32),
        _I.Server_ServerCapabilities_MaxStringLength: (limits.REQUEST_BYTES, T.UInt32),
        _I.Server_ServerCapabilities_MaxByteStringLength: (limits.REQUEST_BYTES, T.UInt32),
        _I.Server_ServerCapabilities_MaxSessions: (own.sessions, T.UInt32),
        _I.Server_ServerCapabilities_MaxSubscriptions: (own.subscriptions, T.UInt32),
        _I.Server_ServerCapabilities_MaxSubscriptionsPerSession: (own.subscriptions_of_session, T.UInt32),
        _I.Server_ServerCapabilities_MaxMonitoredItems: (
            own.sessions * own.monitored_items_of_session,
            T.UInt32,
        ),
        _I.Server_ServerCapabilities_MaxMonitoredItemsPerSubscription: (own.monitored_items_of_session, T.UInt32),
        _I.Server_ServerCapabilities_MaxMonitoredItemsQueueSize: (own.queued_events, T.UInt32),
        _I.Server_ServerCapabilities_MaxSelectClauseParameters: (limits.SELECT_CLAUSES, T.UInt32),
        _I.Server_ServerCapabilities_MaxWhereClauseParameters: (limits.FILTER_ELEMENTS, T.UInt32),
        _I.Server_ServerCapabilities_MinSupportedSampleRate: (own.min_publishing_interval_ms, T.Double),
        _I.Server_ServerRedundancy_RedundancySupport: (0, T.Int32),  # RedundancySupport.None
        _I.Server_Auditing: (False, T.Boolean),  # audit records go to the log, not to events
        _I.Server_ServerDiagnostics_EnabledFlag: (True, T.Boolean),
        _I.Server_ServerStatus_SecondsTillShutdown: (0, T.UInt32),
    }
    arrays = {
        _I.Server_ServerCapabilities_ServerProfileArray: (PROFILES, T.String),
        _I.Server_ServerCapabilities_LocaleIdArray: (known_languages(()), T.String),
        _I.Server_ServerCapabilities_SoftwareCertificates: ((), T.ExtensionObject),
    }
    return {
        **{node: ua.Variant(value, kind) for node, (value, kind) in counts.items()},
        **{node: ua.Variant(list(value), kind, is_array=True) for node, (value, kind) in arrays.items()},
        _I.Server_ServerStatus_ShutdownReason: ua.Variant(ua.LocalizedText(""), T.LocalizedText),
    }


def _diagnostics(core: ServerCore) -> Mapping[ua.NodeId, Callable[[], ua.Variant]]:
    def summary() -> ua.ServerDiagnosticsSummaryDataType:
        return diagnostics.summary(core.counts, core.sessions, core.subscriptions)

    def counter(name: str) -> ua.Variant:
        return ua.Variant(getattr(summary(), name), T.UInt32)

    names = [field.name for field in fields(ua.ServerDiagnosticsSummaryDataType)]
    return {
        ua.NodeId(_SUMMARY): lambda: ua.Variant(summary(), T.ExtensionObject),
        **{
            ua.NodeId(getattr(_I, f"Server_ServerDiagnostics_ServerDiagnosticsSummary_{name}")): partial(counter, name)
            for name in names
        },
        _SESSIONS: lambda: _array([diagnostics.session_diagnostics(session) for session in core.client_sessions]),
        _SECURITY: lambda: _array([diagnostics.session_security(session) for session in core.client_sessions]),
        _SUBSCRIPTIONS: lambda: _array(
            [diagnostics.subscription_diagnostics(subscription) for subscription in core.subscriptions]
        ),
    }


def _array(entries: Sequence[Any]) -> ua.Variant:
    return shared_array(entries, [extensionobject_to_binary(entry) for entry in entries])


class _Cached:
    """A value cached for one second, as a client may read it a thousand times in one request."""

    def __init__(self, compute: Callable[[], ua.Variant]) -> None:
        self._compute = compute
        self._computed_at = -_INTERVAL_S
        self._value = ua.DataValue()

    def read(self, _node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        """Return the cached value; compute it when it is missing or expired."""
        if time.monotonic() - self._computed_at >= _INTERVAL_S:
            now = datetime.now(UTC)
            self._value = ua.DataValue(self._compute(), SourceTimestamp=now, ServerTimestamp=now)
            self._computed_at = time.monotonic()
        return self._value


def _may_read(node_id: ua.NodeId, caller: Caller, channel: ServerChannel) -> bool:
    """Return whether a caller may read a node: the arrays of sessions and subscriptions are for engineers."""
    if node_id not in _OF_ENGINEERS:
        return True
    peer = channel.peer
    return caller.role >= Role.ENGINEER and (node_id != _SECURITY or peer.is_encrypted or peer.is_local)
