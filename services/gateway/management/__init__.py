"""The management node, `$management`, of virtual hosts: requests that clients publish to it, and their replies."""
