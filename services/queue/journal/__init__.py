"""Writes the journal, knows which messages were taken, and answers a batch when it is done."""
