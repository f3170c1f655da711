"""Words: frozen types, Protocols and errors. Imports nothing but the standard library's pure parts."""
