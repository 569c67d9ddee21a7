"""Loads frozen settings from TOML files and environment, and reports all problems together."""

from edge.config.load import load_settings, main_file
from edge.config.maintenance import MaintenanceSettings
from edge.config.northbound import NorthboundSettings
from edge.config.opcua import OpcuaSettings
from edge.config.opcua_equipment import OpcuaEquipmentSettings
from edge.config.operations import OperationsSettings
from edge.config.password import password_of
from edge.config.retention import SESSION_EXPIRY_SECONDS, RetentionSettings
from edge.config.sections import (
    SECTIONS,
    EquipmentSettings,
    GatewaySettings,
    LoggingSettings,
    MetricsSettings,
    MqttEquipmentSettings,
    MqttSettings,
    RedisSettings,
    RpcSettings,
    Settings,
    broker_settings,
)
from edge.config.station import StationFilesSettings
from edge.config.users import UsersSettings
from edge.features.fleet.settings import FleetSettings
from edge.features.flows.settings import FlowsSettings
from edge.features.page.settings import WebSettings
from edge.features.sparkplug.settings import SparkplugSettings
from edge.features.telemetry.settings import MirrorSettings, MqttSourceSettings, SourceSettings, TelemetrySettings

__all__ = [
    "SECTIONS",
    "SESSION_EXPIRY_SECONDS",
    "EquipmentSettings",
    "FleetSettings",
    "FlowsSettings",
    "GatewaySettings",
    "LoggingSettings",
    "MaintenanceSettings",
    "MetricsSettings",
    "MirrorSettings",
    "MqttEquipmentSettings",
    "MqttSettings",
    "MqttSourceSettings",
    "NorthboundSettings",
    "OpcuaEquipmentSettings",
    "OpcuaSettings",
    "OperationsSettings",
    "RedisSettings",
    "RetentionSettings",
    "RpcSettings",
    "Settings",
    "SourceSettings",
    "SparkplugSettings",
    "StationFilesSettings",
    "TelemetrySettings",
    "UsersSettings",
    "WebSettings",
    "broker_settings",
    "load_settings",
    "main_file",
    "password_of",
]
