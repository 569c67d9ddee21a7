"""Operations of a plant of gateways: below the work of stations, without knowledge of OPC UA and MQTT."""
