"""A ledger as a busy day leaves it, and how long a look-up in it takes."""
