"""What clients see in the OPC UA server: machines and their jobs (OPC 10031-4, 40001-3); its protocol is `opcua`."""
