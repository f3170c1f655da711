"""Telegram, by long polling or webhook."""
