"""The OPC UA server: publishes the machines and their jobs (OPC 10031-4 within OPC 40001-3)."""
