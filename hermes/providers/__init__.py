"""Provider adapters, one package each."""
