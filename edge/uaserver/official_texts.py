"""Descriptions of nodes of the official node sets, which leave them out: people read them in their client.

What a member is follows OPC 10000-5, 10000-9 and 10000-100; the words are our own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue

_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # the entry points, the Server object and its status
        "Root": "The root of the address space.",
        "Objects": "The objects of this server: machines, the gateway, the server itself.",
        "Types": "The types of this server.",
        "Views": "The views of this server.",
        "Server": "The server: its status, its capabilities, its diagnostics.",
        "ServerArray": "The URIs of the servers that references lead to; the first is this server.",
        "NamespaceArray": "The URIs of the namespaces, by their index.",
        "ServerStatus": "The status of the server.",
        "ServiceLevel": "How well the server can serve, 0 to 255; 0: maintenance.",
        "Auditing": "Whether audit events are sent.",
        "StartTime": "When the server started.",
        "CurrentTime": "The time of the server.",
        "State": "The state of the server.",
        "BuildInfo": "The product and its version.",
        "ProductUri": "The URI of the product.",
        "ManufacturerName": "The manufacturer of the product.",
        "ProductName": "The name of the product.",
        "SoftwareVersion": "The version of the software.",
        "BuildNumber": "The number of the build.",
        "BuildDate": "The date of the build.",
        "SecondsTillShutdown": "The seconds until the server stops.",
        "ShutdownReason": "Why the server stops.",
        "VendorServerInfo": "More about the server; empty.",
        # capabilities
        "ServerCapabilities": "What the server can do, and its limits.",
        "ServerProfileArray": "The profiles whose services and nodes the server has.",
        "LocaleIdArray": "The languages of the server.",
        "MinSupportedSampleRate": "The shortest sampling interval, in milliseconds.",
        "MaxBrowseContinuationPoints": "The most continuation points of Browse in a session.",
        "MaxQueryContinuationPoints": "The most continuation points of queries; 0: there are no queries.",
        "MaxHistoryContinuationPoints": "The most continuation points of HistoryRead in a session.",
        "SoftwareCertificates": "The certificates of the software.",
        "MaxArrayLength": "The longest array in a request.",
        "MaxStringLength": "The longest text in a request, in bytes.",
        "MaxByteStringLength": "The longest byte string in a request.",
        "MaxSessions": "The most sessions.",
        "MaxSubscriptions": "The most subscriptions.",
        "MaxMonitoredItems": "The most monitored items.",
        "MaxSubscriptionsPerSession": "The most subscriptions of a session.",
        "MaxMonitoredItemsPerSubscription": "The most monitored items of a subscription.",
        "MaxMonitoredItemsQueueSize": "The longest queue of a monitored item.",
        "MaxSelectClauseParameters": "The most select clauses of an event filter.",
        "MaxWhereClauseParameters": "The most elements of the where clause of an event filter.",
        "OperationLimits": "What one request may ask for.",
        "MaxNodesPerRead": "The most values of one Read.",
        "MaxNodesPerWrite": "The most values of one Write.",
        "MaxNodesPerMethodCall": "The most methods of one Call.",
        "MaxNodesPerBrowse": "The most nodes of one Browse.",
        "MaxNodesPerRegisterNodes": "The most nodes of one RegisterNodes.",
        "MaxNodesPerTranslateBrowsePathsToNodeIds": "The most paths of one TranslateBrowsePathsToNodeIds.",
        "MaxMonitoredItemsPerCall": "The most monitored items of one request.",
        "ModellingRules": "The modelling rules.",
        "AggregateFunctions": "The aggregates of histories.",
        # diagnostics
        "ServerDiagnostics": "What the server counts.",
        "ServerDiagnosticsSummary": "The counters of the server.",
        "SessionsDiagnosticsSummary": "The counters of the sessions.",
        "SessionDiagnosticsArray": "The sessions with their counters.",
        "SessionSecurityDiagnosticsArray": "The sessions with their users and channels.",
        "SubscriptionDiagnosticsArray": "The subscriptions with their counters.",
        "EnabledFlag": "Whether the server counts.",
        "ServerViewCount": "The number of views.",
        "CurrentSessionCount": "The number of sessions.",
        "CumulatedSessionCount": "The sessions since the start.",
        "SecurityRejectedSessionCount": "The sessions that were refused for security.",
        "RejectedSessionCount": "The sessions that were refused.",
        "SessionTimeoutCount": "The sessions that ended by their timeout.",
        "SessionAbortCount": "The sessions that ended with their connection.",
        "CurrentSubscriptionCount": "The number of subscriptions.",
        "CumulatedSubscriptionCount": "The subscriptions since the start.",
        "PublishingIntervalCount": "The number of different publishing intervals.",
        "SecurityRejectedRequestsCount": "The requests that were refused for security.",
        "RejectedRequestsCount": "The requests that were refused.",
        # redundancy, namespaces, methods of the server
        "ServerRedundancy": "Whether other servers show the same.",
        "RedundancySupport": "The kind of redundancy; 0: none, 3: hot.",
        "ServerUriArray": "The servers of the redundant set.",
        "Namespaces": "The namespaces and their metadata.",
        "DefaultRolePermissions": "The permissions of the roles; empty: each method has its own.",
        "DefaultUserRolePermissions": "The permissions of the user; empty: each method has its own.",
        "DefaultAccessRestrictions": "The restrictions of access; 0: none for the whole namespace.",
        "ModelVersion": "The semantic version of the model.",
        "ConfigurationVersion": "The version of the configuration.",
        "NamespaceFile": "The namespace as a file.",
        "GetMonitoredItems": "Return the handles of the monitored items of a subscription.",
        "ResendData": "Send the values of the monitored items of a subscription again.",
        # conditions
        "Enable": "Enable the condition.",
        "Disable": "Disable the condition.",
        "AddComment": "Add a comment to the condition.",
        "Acknowledge": "Acknowledge the condition.",
        "Confirm": "Confirm the condition.",
        "Reset": "Reset a latched alarm.",
        "Reset2": "Reset a latched alarm, with a comment.",
        "TimedShelve": "Shelve the alarm for a time.",
        "TimedShelve2": "Shelve the alarm for a time, with a comment.",
        "OneShotShelve": "Shelve the alarm until it is normal.",
        "OneShotShelve2": "Shelve the alarm until it is normal, with a comment.",
        "Unshelve": "Unshelve the alarm.",
        "Unshelve2": "Unshelve the alarm, with a comment.",
        "ShelvingState": "Whether a person has shelved the alarm.",
        "LimitState": "The limit that the value has passed.",
        "Respond": "Answer the dialog with one of its options.",
        # every method and namespace
        "InputArguments": "The arguments of the method.",
        "OutputArguments": "The results of the method.",
        "NamespaceUri": "The URI of the namespace.",
        "NamespaceVersion": "The version of the types in the namespace.",
        "NamespacePublicationDate": "The date of that version.",
        "IsNamespaceSubset": "Whether the server has a part of the namespace only.",
        "StaticNodeIdTypes": "The kinds of NodeIds that are the same in every server.",
        "StaticNumericNodeIdRange": "The numeric NodeIds that are the same in every server.",
        "StaticStringNodeIdPattern": "The text NodeIds that are the same in every server.",
    }
)
"""By browse name."""


def official_text(name: str) -> str:
    """Return the description of a node by its browse name; that of an URI is that of metadata, else empty."""
    return _TEXTS.get(name, "Metadata of a namespace." if name.startswith("http://") else "")


def describe_official(aspace: AddressSpace) -> None:
    """Write the descriptions that the node sets leave out; one that a node set has stays."""
    for node_id in aspace.keys():  # noqa: SIM118 - not a dict
        attributes = aspace[node_id].attributes
        official = aspace.read_attribute_value(node_id, ua.AttributeIds.Description).Value
        if official is not None and official.Value is not None and official.Value.Text:
            continue
        text = official_text(attributes[ua.AttributeIds.BrowseName].value.Value.Value.Name)
        if text:
            described = ua.Variant(ua.LocalizedText(text, "en"), ua.VariantType.LocalizedText)
            attributes[ua.AttributeIds.Description] = AttributeValue(ua.DataValue(described))
