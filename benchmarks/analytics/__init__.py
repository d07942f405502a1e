"""How fast analyses are: the audit beside DuckDB doing the same, and the stream beside a ledger that is written."""
