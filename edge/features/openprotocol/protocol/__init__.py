"""The messages of Open Protocol, and a connection that exchanges them."""
