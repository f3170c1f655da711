"""Servers that speak Anthropic's messages."""
