"""The station page and its HTTP API: people at the station see and control jobs in a browser."""
