"""Shows the machines and their jobs to OPC UA clients: OPC 10031-4 in the frame of OPC 40001-3."""
