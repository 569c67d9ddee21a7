"""The product's changes to asyncua's protocol layer, for server and client: codec, limits, sessions."""
