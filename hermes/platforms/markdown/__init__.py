"""A reply's Markdown as one tree that each platform's ``render`` spells in its own dialect."""
