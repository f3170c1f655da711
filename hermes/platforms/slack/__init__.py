"""Slack, by Socket Mode or HTTP events."""
