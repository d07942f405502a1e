"""What is told of messages and connections: ledger, spans, captured messages, events."""
