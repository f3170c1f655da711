"""The section ``gateway``: the entrance, links, delivery, and the bounds between them."""

from __future__ import annotations

from enum import StrEnum

from hermes.config.fields import (
    NO_SECRET,
    Bind,
    Complaint,
    Duration,
    Flag,
    Number,
    Reload,
    Secret,
    Section,
    Size,
    Text,
    Texts,
    Whole,
    key,
)


class ReconnectConfig(Section):
    """What follows when a link's quick retries (1, 2, 4, 8 s) are used up."""

    base: Duration = key(30.0, "First wait; doubles.", gt=0)
    cap: Duration = key(300.0, "Longest wait.", gt=0)
    max_attempts: Whole = key(10, "Attempts before the platform is parked.", ge=1)
    park_probe: Duration = key(900.0, "Time between two probes of a parked platform.", gt=0)

    def complaints(self) -> tuple[Complaint, ...]:
        if self.base > self.cap:
            return (
                Complaint(
                    "base",
                    "the first wait is longer than the longest",
                    "at most cap",
                    "lower base or raise cap",
                ),
            )
        return ()


class UncertainSend(StrEnum):
    MARK = "mark"
    HOLD = "hold"


class DeliveryConfig(Section):
    max_retries: Whole = key(2, "Quick retries of one sweep.", ge=0, le=20)
    base_delay: Duration = key(2.0, "First wait of a sweep; doubles.", gt=0)
    uncertain: UncertainSend = key(
        UncertainSend.MARK, "A send of unknown outcome: repeat it marked, or hold it for the owner."
    )


class RestartIntensity(Section):
    """More restarts of one part than this within the time, and the process ends."""

    restarts: Whole = key(5, "Restarts allowed.", ge=0)
    seconds: Duration = key(300.0, "Within this time.", gt=0)


class PairingConfig(Section):
    """Codes by which strangers are let in and accounts joined (`platforms.NAME.pairing`, /pair)."""

    valid_for: Duration = key(3600.0, "How long a code is good for.", gt=0, le=86_400)
    every: Duration = key(3600.0, "Shortest time between two codes shown to one stranger.", ge=0)
    pending: Whole = key(50, "Most strangers with a code at once.", ge=1)


class GatewayConfig(Section):
    bind: Bind = key(
        "127.0.0.1:8642", "Where page, probes and API listen; HERMES_BIND overrides.", reload=Reload.PROCESS
    )
    allowed_hosts: Texts = key((), "Further host names by which the page may be called.")
    api_key: Secret = key(NO_SECRET, "Key of /v1/chat/completions; empty: that entrance is off.")
    api_key_file: Text = key("", "A file that holds the key instead.")
    drain_timeout: Duration = key(30.0, "How long a stop waits for turns under way.", ge=0)
    max_age: Duration = key(86_400.0, "Older messages get one line instead of a turn.", gt=0)
    reconnect: ReconnectConfig = key(ReconnectConfig, "How a lost platform comes back.")
    delivery: DeliveryConfig = key(DeliveryConfig, "How replies are sent.")
    group_sessions_per_user: Flag = key(True, "Whether each member of a group has a session of their own.")
    restart_intensity: RestartIntensity = key(
        RestartIntensity, "When failing parts end the process.", reload=Reload.PROCESS
    )
    pairing: PairingConfig = key(PairingConfig, "Codes that let strangers in.")
    disk_floor: Size = key(200 * 2**20, "Free bytes below which intake stops.", ge=0)
    ballast: Size = key(2**20, "Bytes kept aside that pay for the last notices.", reload=Reload.PROCESS, ge=0)
    ready_max_age: Duration = key(120.0, "Age of the oldest waiting row at which /readyz fails.", gt=0)
    stall_after: Duration = key(90.0, "Silence of a platform's direction at which /readyz fails.", gt=0)
    workers: Whole = key(32, "Most sends at once, all platforms together.", reload=Reload.PROCESS, ge=1)
    max_command_age: Duration = key(300.0, "Older commands get a line and are not run (R9).", gt=0)
    backlog_messages: Whole = key(50, "Most waiting messages that become one turn.", ge=1)
    backlog_bytes: Size = key(256 * 1024, "Most bytes of waiting messages that become one turn.", gt=0)
    media_max_bytes: Size = key(20 * 2**20, "Largest file that is fetched.", gt=0)
    media_timeout: Duration = key(60.0, "Longest time to fetch a file.", gt=0)
    media_concurrency: Whole = key(
        8, "Most files fetched at once; one chat takes half.", reload=Reload.PROCESS, ge=1
    )
    media_text_chars: Whole = key(
        20_000, "Most characters of a document that go into a turn; all its documents: four times as many.", ge=1
    )
    media_max_pixels: Whole = key(50_000_000, "Most pixels of a picture that is decoded.", ge=1)
    max_skew: Duration = key(60.0, "Difference of the clocks above which max_age is suspended (R41).", gt=0)
    loop_lag: Number = key(0.5, "Seconds of loop lag that are reported.", gt=0)
