"""The audit and latencies while the ledger is written: Structured Streaming over its files."""
