"""The one place that knows every adapter: builds the gateway, starts it in order, stops it in reverse."""
