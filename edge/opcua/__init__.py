"""The protocol of OPC UA, on top of asyncua: codec, channels, sessions, limits; what clients see is `uaserver`."""
