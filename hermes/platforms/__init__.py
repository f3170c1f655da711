"""Platform adapters, one package each."""
