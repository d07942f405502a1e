"""Metrics of a process: instruments, and their values. See README.md beside this file."""
