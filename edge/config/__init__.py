"""Frozen settings from TOML files and environment, all problems told at once."""

from edge.config.load import load_settings
from edge.config.sections import (
    SECTIONS,
    GatewaySettings,
    LoggingSettings,
    MqttEquipmentSettings,
    MqttSettings,
    NorthboundSettings,
    OpcuaSettings,
    RedisSettings,
    RetentionSettings,
    RpcSettings,
    Settings,
)

__all__ = [
    "SECTIONS",
    "GatewaySettings",
    "LoggingSettings",
    "MqttEquipmentSettings",
    "MqttSettings",
    "NorthboundSettings",
    "OpcuaSettings",
    "RedisSettings",
    "RetentionSettings",
    "RpcSettings",
    "Settings",
    "load_settings",
]
