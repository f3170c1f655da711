"""Probes, metrics and the chat page."""
