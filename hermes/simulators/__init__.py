"""Loopback servers that speak the real wire protocols and misbehave on order."""
