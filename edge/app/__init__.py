"""The one place that knows every adapter: builds the gateway, starts it in order, tells how it is, stops it."""
