"""Spans of any origin, one row each: OTLP JSON lines, files of the OpenTelemetry collector, Jaeger's JSON."""
