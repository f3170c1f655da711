"""The one file state.db; all SQL is here."""
