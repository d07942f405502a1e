"""Loggers other than standard error: records, what each does with lines (plug-ins), and lines of all processes."""
