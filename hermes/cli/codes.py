"""Exit codes (CONTRACT, "Command line")."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
RESTART = 75
"""EX_TEMPFAIL: a restart may mend it."""
REFUSED = 78
"""EX_CONFIG: bad configuration, foreign home, newer schema, home already owned."""
INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
