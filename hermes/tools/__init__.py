"""Tools the agent may call."""
