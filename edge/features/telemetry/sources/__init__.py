"""Sources of samples: MQTT, OPC UA, Redis."""
