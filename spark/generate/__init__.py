"""Ledgers of random journeys, of any size, whose true fates are known."""
