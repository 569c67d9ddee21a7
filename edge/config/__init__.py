"""Loads frozen settings from TOML files and environment, and reports all problems together."""

from edge.config.load import load_settings, main_file, password_of
from edge.config.opcua import OpcuaSettings
from edge.config.opcua_equipment import OpcuaEquipmentSettings
from edge.config.retention import SESSION_EXPIRY_SECONDS, RetentionSettings
from edge.config.sections import (
    SECTIONS,
    EquipmentSettings,
    FeatureSettings,
    GatewaySettings,
    LoggingSettings,
    MaintenanceSettings,
    MetricsSettings,
    MqttEquipmentSettings,
    MqttSettings,
    NorthboundSettings,
    OperationsSettings,
    RedisSettings,
    RpcSettings,
    Section,
    Settings,
    StationFilesSettings,
    UsersSettings,
    broker_settings,
)

__all__ = [
    "SECTIONS",
    "SESSION_EXPIRY_SECONDS",
    "EquipmentSettings",
    "FeatureSettings",
    "GatewaySettings",
    "LoggingSettings",
    "MaintenanceSettings",
    "MetricsSettings",
    "MqttEquipmentSettings",
    "MqttSettings",
    "NorthboundSettings",
    "OpcuaEquipmentSettings",
    "OpcuaSettings",
    "OperationsSettings",
    "RedisSettings",
    "RetentionSettings",
    "RpcSettings",
    "Section",
    "Settings",
    "StationFilesSettings",
    "UsersSettings",
    "broker_settings",
    "load_settings",
    "main_file",
    "password_of",
]
