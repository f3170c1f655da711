"""The section ``platforms.web``."""

from __future__ import annotations

from hermes.config.adapters import PlatformConfig
from hermes.config.fields import Duration, Flag, Reload, Size, Whole, key


class WebConfig(PlatformConfig):
    """The page. Whoever holds its token is the owner; probes are served in any case."""

    enabled: Flag = key(True, "Whether the page is served.")
    max_message_bytes: Size = key(64 * 1024, "Longest message the page may send.", reload=Reload.LIVE, gt=0)
    max_upload_bytes: Size = key(20 * 2**20, "Largest file the page may send.", reload=Reload.LIVE, gt=0)
    max_streams: Whole = key(64, "Most open event streams.", reload=Reload.LIVE, ge=1)
    heartbeat: Duration = key(
        15.0, "Time between two signs of life of an idle event stream.", reload=Reload.LIVE, gt=0
    )
    cookie_age: Duration = key(30 * 86_400.0, "How long a browser stays signed in.", reload=Reload.LIVE, gt=0)
