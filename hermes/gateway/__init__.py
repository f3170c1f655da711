"""From an update to a turn and from a reply to a receipt."""
