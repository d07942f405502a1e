"""Which messages are captured with their bodies, and what that costs. See `rules.py` and `cost.py`."""
