"""Does a message cost more when 10,000 sessions and 100,000 messages are stored? A ratio in one run.

    python -m tests.benchmarks.many_sessions

Two gateways run beside each other, one with an empty store and one with a full one; both get the same
messages in turn, so that whatever else the machine does hits both alike. CPU is read in nanoseconds from
the scheduler, all threads included, per block of messages; the medians are compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from hermes.core.transcript import AssistantItem, UserItem, dump_item
from hermes.simulators.openai import OpenAISimulator
from hermes.simulators.telegram import TelegramSimulator
from hermes.store.database import open_connection

BLOCKS, BLOCK = 15, 20
SESSIONS, MESSAGES = 10_000, 10


def fill(path: Path, bot: str) -> None:
    """10,000 sessions of ten messages each, as if they had been talking."""
    conn = open_connection(path)
    conn.execute("BEGIN")
    for n in range(SESSIONS):
        user, session = str(500_000 + n), f"s{n:016x}"
        conn.execute("INSERT INTO principals VALUES (?, 'user', 0)", (f"p{n}",))
        conn.execute("INSERT INTO identities VALUES ('telegram', ?, ?, ?, '', 0)", (bot, user, f"p{n}"))
        conn.execute(
            "INSERT INTO sessions(id, principal_id, created_at, last_active_at) VALUES (?,?,0,0)", (session, f"p{n}")
        )
        conn.execute("INSERT INTO session_keys VALUES (?,?)", (f"telegram:{bot}:{user}", session))
        _talk(conn, n, user, session, bot)
    conn.execute("COMMIT")
    conn.close()


def _talk(conn: sqlite3.Connection, n: int, user: str, session: str, bot: str) -> None:
    for m in range(MESSAGES // 2):
        key = f"{user}/{m}"
        conn.execute("INSERT INTO seen_keys VALUES ('telegram', ?, ?, 0)", (bot, key))
        row = conn.execute(
            "INSERT INTO inbox(platform, account, dedup_key, session_id, principal_id, user_id, chat_id, chat_kind, "
            "raw, state, outcome, received_at, done_at) "
            "VALUES ('telegram',?,?,?,?,?,?,'private','{}','done','answered',0,0)",
            (bot, key, session, f"p{n}", user, user),
        ).lastrowid
        turn = conn.execute(
            "INSERT INTO turns(session_id, principal_id, generation, epoch, state, outcome, platform, account, "
            "chat_id, claim_generation, created_at, ended_at) VALUES (?,?,1,1,'done','answered','telegram',?,?,1,0,0)",
            (session, f"p{n}", bot, user),
        ).lastrowid
        conn.execute("INSERT INTO turn_inputs VALUES (?,?,1)", (turn, row))
        for item in (UserItem(f"question {m} of {n}"), AssistantItem(f"answer {m} to {n}, with a few words more")):
            conn.execute(
                "INSERT INTO messages(session_id, generation, principal_id, turn_id, step, item, text, created_at) "
                "VALUES (?,1,?,?,1,?,?,0)",
                (session, f"p{n}", turn, dump_item(item), item.text),
            )
        conn.execute(
            "INSERT INTO outbox(delivery_id, part, session_id, platform, account, chat_id, operation, priority, "
            "payload, nonce, state, expires_at, turn_id, created_at, done_at) "
            "VALUES (0,0,?,'telegram',?,?,'create','final','{}','','delivered',0,?,0,0)",
            (session, bot, user, turn),
        )


class Gateway:
    """One gateway process with its own simulators."""

    def __init__(self, folder: Path, full: bool) -> None:
        self.folder, self.full = folder, full
        self.telegram, self.model = TelegramSimulator(), OpenAISimulator()
        self.blocks: list[float] = []

    async def start(self) -> None:
        """Up and answering."""
        await self.telegram.start()
        await self.model.start()
        home = self.folder / "home"
        home.mkdir(parents=True)
        bot = self.telegram.token.partition(":")[0]
        if self.full:
            fill(home / "state.db", bot)
        config = {
            "model": {"provider": "sim", "model": "m"},
            "providers": {"sim": {"kind": "openai", "base_url": self.model.base_url, "api_key": "sk-benchmark"}},
            "gateway": {"bind": f"127.0.0.1:{_free_port()}"},
            "platforms": {
                "telegram": {
                    "enabled": True, "token": self.telegram.token, "allow_all_users": True,
                    "base_url": self.telegram.base_url.removesuffix("/bot"),
                },
            },
        }  # fmt: skip
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(config))
        self.process = subprocess.Popen(  # noqa: ASYNC220 - a benchmark may wait for a fork
            [sys.executable, "-m", "hermes", "run", "--config", str(path)],
            env={**os.environ, "HERMES_HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for n in range(BLOCK):
            await self.ask(n)

    async def ask(self, number: int) -> None:
        """One message in a chat of its own, until its answer stands there."""
        chat = 500_000 + number
        before = len(self.telegram.chat(chat))
        self.telegram.say(chat, f"hello {number}")
        await self.telegram.wait_for(lambda: len(self.telegram.chat(chat)) > before, timeout=60)

    async def block(self, number: int) -> None:
        """One block of messages, in chats that an old store knows; notes the CPU milliseconds a message."""
        cpu = self._cpu()
        for n in range(BLOCK):
            await self.ask(1000 + number * BLOCK + n)
        self.blocks.append((self._cpu() - cpu) / BLOCK / 1e6)

    def _cpu(self) -> int:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks)

    async def stop(self) -> None:
        """Ends the process and its simulators."""
        self.process.terminate()
        self.process.wait(60)
        await self.telegram.close()
        await self.model.close()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


async def main() -> None:
    """Prints one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Gateway(Path(folder) / "empty", False), Gateway(Path(folder) / "full", True)
        await empty.start()
        await full.start()
        for number in range(BLOCKS):
            await empty.block(number)
            await full.block(number)
        await empty.stop()
        await full.stop()
    one, many = statistics.median(empty.blocks), statistics.median(full.blocks)
    figures = {"cpu_ms_empty": round(one, 2), "cpu_ms_full": round(many, 2), "ratio": round(many / one, 3)}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
