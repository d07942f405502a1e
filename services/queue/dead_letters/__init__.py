"""Dead letters on their way to their exchange."""
