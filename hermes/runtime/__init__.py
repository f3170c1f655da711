"""Machinery that knows nothing of chat."""
