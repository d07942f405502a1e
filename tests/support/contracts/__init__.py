"""The contracts of a release, and what a later one may not do to them."""
