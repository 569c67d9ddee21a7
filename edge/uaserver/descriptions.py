"""The descriptions of nodes whose official types have none, by browse name."""

from collections.abc import Mapping
from types import MappingProxyType

from asyncua import ua

_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        # namespaces (OPC 10000-5, 6.3.13)
        "NamespaceUri": "The URI of the namespace.",
        "NamespaceVersion": "The version of the types in the namespace.",
        "NamespacePublicationDate": "The date of that version.",
        "IsNamespaceSubset": "Whether the server has a part of the namespace only.",
        "StaticNodeIdTypes": "The kinds of NodeIds that are the same in every server.",
        "StaticNumericNodeIdRange": "The numeric NodeIds that are the same in every server.",
        "StaticStringNodeIdPattern": "The text NodeIds that are the same in every server.",
        # machines and jobs (OPC 40001-1, 40001-3, 10031-4)
        "MachineryBuildingBlocks": "The building blocks of the machine.",
        "JobManagement": "The job orders of the machine and their responses.",
        "JobOrderControl": "Receives job orders and lists them.",
        "JobOrderResults": "Provides the responses of job orders, and their events.",
        "JobOrderResponseList": "The response of each job order that has started.",
        "MaxDownloadableJobOrders": "The most job orders that the machine stores; 65535: no limit.",
        "CurrentState": "Bad: the state machine describes jobs and is in no state itself.",
        "Id": "Bad: the state machine describes jobs and is in no state itself.",
        "InputArguments": "The arguments of the method.",
        "OutputArguments": "The results of the method.",
        "Store": "Store a job order; it may not start yet.",
        "StoreAndStart": "Store a job order that may start.",
        "Start": "Allow a stored job order to start.",
        "RevokeStart": "Withdraw the permission to start.",
        "Update": "Replace a job order that has not started.",
        "Pause": "Interrupt a running job.",
        "Resume": "Continue an interrupted job.",
        "Stop": "End a job; it is not completed.",
        "Abort": "Abort a job in any state before its end.",
        "Cancel": "Remove a job order that has not started.",
        "Clear": "Remove a job order that has ended, with its response.",
        "RequestJobResponseByJobOrderID": "Return the response of one job order.",
        "RequestJobResponseByJobOrderState": "Return the responses of the job orders in a state.",
        # types of our own
        "JobOrderStatusEventType": "A job order has changed its state.",
        "RunningChartType": "A running job: its recipe as a sequential function chart.",
        "ChartStepType": "A step of a running chart.",
        "ChartActionType": "An action of a step of a running chart.",
        "RunningCharts": "The jobs that run on the machine now.",
        "Steps": "The steps of the chart.",
        "<Step>": "A step of the chart.",
        "Actions": "The actions of all steps of the chart.",
        "<Action>": "An action of a step.",
        "GatewayType": "The state of a gateway with its store and equipment.",
        "EquipmentType": "The state of one piece of equipment.",
        "Gateway": "The state of this gateway.",
        "Equipment": "The equipment of the gateway.",
        "<Name>": "A piece of equipment.",
        "FlowType": "A flow: cyclic work next to the jobs.",
        "Flows": "The flows of the store.",
        "<Flow>": "A flow.",
        "MaintenanceType": "The maintenance mode of a gateway.",
        "Maintenance": "The maintenance mode: while it is on, no work is started.",
        "MachineryItemState": "Whether the machine works (OPC 40001-1, 12.2).",
        "MachineryOperationMode": "What the machine is used for (OPC 40001-1, 12.3).",
    }
)


def describe(name: str, otherwise: str = "") -> ua.LocalizedText:
    """Return the description of a node by its browse name; `otherwise` for a name chosen by a site."""
    return ua.LocalizedText(_TEXTS.get(name, otherwise), "en")
