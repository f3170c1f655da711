"""Hermes: a chat-agent gateway that keeps what it promises."""

__version__ = "0.1.0"
