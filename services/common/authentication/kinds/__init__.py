"""Kinds of authentication providers, plug-ins of group `hopline.authentication_providers`."""
