"""The ledger's files: finding those that a time range needs, telling sound from unsound, reading them."""
