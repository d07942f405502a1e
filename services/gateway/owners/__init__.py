"""Whoever owns queues, followed through changes: asked, and told what clients hold."""
