"""What the whole stack counts, asked of every process, for who scrapes it."""
