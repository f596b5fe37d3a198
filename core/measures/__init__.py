"""What is measured (`core.base.measures`), in Prometheus' format, on a port of its own for whoever watches the server."""
