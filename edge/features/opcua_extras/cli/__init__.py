"""The part of `edge opcua` that announces the server."""
