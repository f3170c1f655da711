"""Files that go out, through each real adapter (R22): as what they are, and marked where they may be a repeat (R18)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hermes.core.delivery import MARK_PREFIX, Operation, Sent
from hermes.core.errors import PlatformFailure
from hermes.core.events import Address
from hermes.core.ports import Outgoing, SendsFiles
from hermes.core.transcript import FileRef
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.slack.adapter import SlackPlatform
from hermes.platforms.telegram.adapter import TelegramPlatform
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.faults import Reset
from hermes.simulators.slack import SlackSimulator
from hermes.simulators.telegram import TelegramSimulator

pytestmark = pytest.mark.wire
MARK = MARK_PREFIX.strip()
CONTENT = b"\x89PNG not really, but bytes" * 4000


def upload(platform: SendsFiles, to: Address, name: str, mime: str, nonce: str = "1-1") -> Outgoing:
    part = platform.file_part(FileRef("0" * 64, name, mime, len(CONTENT)))
    return Outgoing(to, Operation.CREATE, part.payload, nonce, content=CONTENT, since=time.time())


@pytest.mark.parametrize(
    ("name", "mime", "kind"),
    [
        ("a.pdf", "application/pdf", "document"),
        ("a.png", "image/png", "photo"),
        ("a.ogg", "audio/ogg", "voice"),
        ("a.mp3", "audio/mpeg", "audio"),
        ("a.svg", "image/svg+xml", "document"),
        ("bericht mit ü.txt", "text/plain", "document"),
    ],
)
async def test_telegram_shows_a_file_as_what_it_is(
    sim: TelegramSimulator, adapter: TelegramPlatform, name: str, mime: str, kind: str
) -> None:
    sim.say(7, "hello")
    sent = upload(adapter, Address("telegram", "424242", "7"), name, mime)
    receipt = await adapter.send(sent)
    (seen,) = sim.chat(7)
    assert (seen.kind, seen.attachment, str(seen.message_id)) == (kind, name, receipt.message_ref)
    assert CONTENT in [data for _, data in sim.world.files.values()]
    await adapter.send(replace(sent, plain=True, marked=True))
    assert [(m.kind, m.text) for m in sim.chat(7)][1:] == [("document", MARK)]


async def test_discord_takes_a_file_and_finds_it_again_before_it_repeats_it(
    discord_sim: DiscordSimulator, discord: DiscordPlatform
) -> None:
    discord_sim.say(7, "hello")
    sent = upload(discord, Address("discord", "424242", "7"), "a report.pdf", "application/pdf")
    receipt = await discord.send(sent)
    (seen,) = discord_sim.chat(7)
    assert str(seen.message_id) == receipt.message_ref
    assert CONTENT in [data for _, _, data in discord_sim.world.files.values()]
    again = replace(sent, nonce="another process", since=time.time() - 100.0, marked=True)
    assert await discord.send(again) == receipt
    assert len(discord_sim.chat(7)) == 1


async def test_slack_takes_a_file_into_its_thread_and_marks_what_may_be_a_repeat(
    slack_sim: SlackSimulator, slack: SlackPlatform
) -> None:
    slack_sim.place(7)
    sent = upload(slack, Address("slack", "U0BOT", "D0007"), "a.pdf", "application/pdf")
    await slack.send(sent)
    assert slack_sim.texts(7) == ["[a.pdf]"]
    assert CONTENT in slack_sim.world.uploads.values()
    slack_sim.faults.add(Reset(), endpoint="files.completeUploadExternal")
    doubtful = replace(sent, nonce="2-0")
    with pytest.raises(PlatformFailure) as caught:
        await slack.send(doubtful)
    assert caught.value.facts.sent is Sent.MAYBE_SENT
    await slack.send(doubtful)
    assert slack_sim.texts(7)[-1] == f"{MARK}\n[a.pdf]"
