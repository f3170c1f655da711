"""Turns: ask, act, recover."""
