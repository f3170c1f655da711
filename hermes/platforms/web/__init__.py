"""The page's chat, whose destination is the store."""
