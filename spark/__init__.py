"""Analyses of the ledger and of traces on Apache Spark."""
