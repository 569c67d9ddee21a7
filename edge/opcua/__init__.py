"""What the product changes of asyncua's protocol layer, for server and client: codec, limits, sessions."""
