"""The schema of ``state.db`` and its numbered migrations.

Each migration runs in a transaction of its own together with its ``user_version``. The file carries
``application_id``, so that a file of another program is recognised and never touched (R34). All tables
that later work needs are laid here; a table no code writes yet says so.

    inbox ── turn_inputs ── turns ── journal (tool and model intents) ── ledger (money)
      │                       │
    seen_keys              messages (transcript) ── messages_fts (external content, filled in batches)
                              │
                           outbox (one row a part) ── spool / attachments
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

from hermes.core.errors import ForeignHome, StoreUnavailable

APPLICATION_ID = 0x48524D53  # "HRMS"

_V1 = """
CREATE TABLE owner(
  id INTEGER PRIMARY KEY CHECK(id = 1), generation INTEGER NOT NULL, pid INTEGER, host TEXT,
  started_at REAL, clean_end INTEGER NOT NULL DEFAULT 1, unclean_starts INTEGER NOT NULL DEFAULT 0);
INSERT INTO owner(id, generation) VALUES (1, 0);

CREATE TABLE principals(id TEXT PRIMARY KEY, kind TEXT NOT NULL, created_at REAL NOT NULL) WITHOUT ROWID;
INSERT INTO principals VALUES ('owner', 'owner', 0);
CREATE TABLE identities(
  platform TEXT NOT NULL, account TEXT NOT NULL, user_id TEXT NOT NULL, principal_id TEXT NOT NULL,
  display TEXT, linked_at REAL NOT NULL, PRIMARY KEY(platform, account, user_id)) WITHOUT ROWID;
CREATE INDEX identities_principal ON identities(principal_id);
CREATE TABLE link_codes(
  code_hash TEXT PRIMARY KEY, principal_id TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL,
  used_at REAL) WITHOUT ROWID;
CREATE TABLE stranger_counts(
  platform TEXT NOT NULL, account TEXT NOT NULL, user_id TEXT NOT NULL, chat_id TEXT, count INTEGER NOT NULL,
  first_at REAL NOT NULL, last_at REAL NOT NULL, PRIMARY KEY(platform, account, user_id)) WITHOUT ROWID;

CREATE TABLE sessions(
  id TEXT PRIMARY KEY, principal_id TEXT NOT NULL, generation INTEGER NOT NULL DEFAULT 1,
  cut_seq INTEGER NOT NULL DEFAULT 0, snapshot_id INTEGER, title TEXT, created_at REAL NOT NULL,
  last_active_at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX sessions_principal ON sessions(principal_id, last_active_at);
CREATE TABLE session_keys(key TEXT PRIMARY KEY, session_id TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX session_keys_session ON session_keys(session_id);

CREATE TABLE seen_keys(
  platform TEXT NOT NULL, account TEXT NOT NULL, dedup_key TEXT NOT NULL, seen_at REAL NOT NULL,
  PRIMARY KEY(platform, account, dedup_key)) WITHOUT ROWID;
CREATE INDEX seen_keys_age ON seen_keys(seen_at);
CREATE TABLE inbox(
  id INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, account TEXT NOT NULL, dedup_key TEXT NOT NULL,
  message_ref TEXT, session_id TEXT, principal_id TEXT, user_id TEXT, display TEXT, chat_id TEXT,
  chat_kind TEXT, thread_id TEXT, merge_key TEXT, raw TEXT NOT NULL, problem TEXT,
  state TEXT NOT NULL, outcome TEXT, outcome_reason TEXT, outcome_ref TEXT,
  not_before REAL NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, received_at REAL NOT NULL,
  sent_at REAL, turn_id INTEGER, claim_generation INTEGER, done_at REAL);
CREATE INDEX inbox_open ON inbox(session_id, id) WHERE state <> 'done';
CREATE INDEX inbox_turn ON inbox(turn_id) WHERE state = 'claimed';
CREATE INDEX inbox_done ON inbox(done_at) WHERE state = 'done';
CREATE INDEX inbox_chat ON inbox(platform, chat_id, id);
CREATE INDEX inbox_dead ON inbox(id) WHERE outcome = 'dead_letter';
CREATE TABLE attachments(
  id INTEGER PRIMARY KEY, inbox_id INTEGER NOT NULL, kind TEXT NOT NULL, ref TEXT NOT NULL, name TEXT, mime TEXT,
  size INTEGER, sha256 TEXT, state TEXT NOT NULL, error TEXT, fetched_at REAL);
CREATE INDEX attachments_inbox ON attachments(inbox_id);

CREATE TABLE turns(
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, principal_id TEXT NOT NULL,
  generation INTEGER NOT NULL, epoch INTEGER NOT NULL, state TEXT NOT NULL, cause TEXT, outcome TEXT,
  reason TEXT, platform TEXT NOT NULL, account TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT,
  reply_to TEXT, step INTEGER NOT NULL DEFAULT 0, active_seconds REAL NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0, alone INTEGER NOT NULL DEFAULT 0, parked INTEGER NOT NULL DEFAULT 0,
  suspended_until REAL, claim_generation INTEGER NOT NULL, created_at REAL NOT NULL, ended_at REAL);
CREATE INDEX turns_open ON turns(session_id) WHERE state <> 'done';
CREATE INDEX turns_ended ON turns(ended_at) WHERE state = 'done';
CREATE TABLE turn_inputs(
  turn_id INTEGER NOT NULL, inbox_id INTEGER NOT NULL, step INTEGER NOT NULL,
  PRIMARY KEY(turn_id, inbox_id)) WITHOUT ROWID;
CREATE TABLE journal(
  id INTEGER PRIMARY KEY AUTOINCREMENT, turn_id INTEGER NOT NULL, epoch INTEGER NOT NULL, step INTEGER NOT NULL,
  kind TEXT NOT NULL, intent_id TEXT, call_id TEXT, name TEXT, effect TEXT, open INTEGER NOT NULL,
  payload TEXT, at REAL NOT NULL, ended_at REAL);
CREATE INDEX journal_turn ON journal(turn_id, id);
CREATE UNIQUE INDEX journal_intent ON journal(intent_id) WHERE intent_id IS NOT NULL;
CREATE TABLE ledger(
  id INTEGER PRIMARY KEY AUTOINCREMENT, turn_id INTEGER, session_id TEXT, principal_id TEXT, day TEXT NOT NULL,
  provider TEXT NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL, state TEXT NOT NULL,
  reserved_usd REAL NOT NULL DEFAULT 0, actual_usd REAL, input_tokens INTEGER, output_tokens INTEGER,
  cached_tokens INTEGER, at REAL NOT NULL, settled_at REAL);
CREATE INDEX ledger_open ON ledger(turn_id) WHERE state = 'open';
CREATE INDEX ledger_day ON ledger(day, principal_id);

CREATE TABLE messages(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, generation INTEGER NOT NULL,
  principal_id TEXT NOT NULL, turn_id INTEGER, step INTEGER NOT NULL, item TEXT NOT NULL,
  text TEXT NOT NULL, live INTEGER NOT NULL DEFAULT 1, created_at REAL NOT NULL);
CREATE INDEX messages_session ON messages(session_id, generation, seq);
CREATE INDEX messages_turn ON messages(turn_id);
CREATE INDEX messages_principal ON messages(principal_id, seq);
CREATE VIRTUAL TABLE messages_fts USING fts5(
  text, content='messages', content_rowid='seq', tokenize='trigram');
CREATE TABLE snapshots(
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, generation INTEGER NOT NULL,
  covers_to_seq INTEGER NOT NULL, previous_id INTEGER, text TEXT NOT NULL, created_at REAL NOT NULL);
CREATE INDEX snapshots_session ON snapshots(session_id, generation);

CREATE TABLE outbox(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, delivery_id INTEGER NOT NULL, part INTEGER NOT NULL,
  session_id TEXT, platform TEXT NOT NULL, account TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT,
  reply_to TEXT, operation TEXT NOT NULL, priority TEXT NOT NULL, payload TEXT NOT NULL, nonce TEXT NOT NULL,
  state TEXT NOT NULL, mark INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  not_before REAL NOT NULL DEFAULT 0, expires_at REAL NOT NULL, turn_id INTEGER, epoch INTEGER,
  claim_generation INTEGER, receipt TEXT, reason TEXT, created_at REAL NOT NULL, done_at REAL);
CREATE INDEX outbox_open ON outbox(seq) WHERE state IN ('drafting', 'pending', 'sending', 'uncertain');
CREATE INDEX outbox_dead ON outbox(seq) WHERE state IN ('failed', 'held');
CREATE INDEX outbox_delivery ON outbox(delivery_id, part);
CREATE INDEX outbox_turn ON outbox(turn_id);
CREATE INDEX outbox_chat ON outbox(platform, chat_id, seq);
CREATE INDEX outbox_done ON outbox(done_at) WHERE done_at IS NOT NULL;
CREATE TABLE spool(sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, created_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE chat_bans(
  platform TEXT NOT NULL, account TEXT NOT NULL, chat_id TEXT NOT NULL, until REAL NOT NULL, noted_at REAL NOT NULL,
  PRIMARY KEY(platform, account, chat_id)) WITHOUT ROWID;

CREATE TABLE questions(
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, turn_id INTEGER NOT NULL, intent_id TEXT NOT NULL,
  call_id TEXT NOT NULL, kind TEXT NOT NULL, prompt TEXT NOT NULL, options TEXT NOT NULL, user_id TEXT,
  state TEXT NOT NULL, answer TEXT, created_at REAL NOT NULL, expires_at REAL NOT NULL, answered_at REAL);
CREATE INDEX questions_open ON questions(session_id) WHERE state = 'open';

CREATE TABLE links(
  platform TEXT NOT NULL, account TEXT NOT NULL, state TEXT NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY(platform, account)) WITHOUT ROWID;
CREATE TABLE cursors(
  platform TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, value TEXT NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY(platform, account, channel)) WITHOUT ROWID;
CREATE TABLE upstreams(
  target TEXT PRIMARY KEY, state TEXT NOT NULL, blocked_until REAL, updated_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE learned(
  provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, learned_at REAL NOT NULL,
  expires_at REAL NOT NULL, PRIMARY KEY(provider, model, key)) WITHOUT ROWID;
CREATE TABLE settings(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

_V2 = """
ALTER TABLE ledger ADD COLUMN generation INTEGER;
ALTER TABLE ledger ADD COLUMN calls INTEGER NOT NULL DEFAULT 1;
ALTER TABLE ledger ADD COLUMN priced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN written_tokens INTEGER;
CREATE INDEX ledger_session ON ledger(session_id);
CREATE TABLE spend(key TEXT PRIMARY KEY, usd REAL NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE goals(
  session_id TEXT PRIMARY KEY, generation INTEGER NOT NULL, principal_id TEXT NOT NULL,
  platform TEXT NOT NULL, account TEXT NOT NULL,
  chat_id TEXT NOT NULL, chat_kind TEXT NOT NULL, thread_id TEXT, user_id TEXT NOT NULL,
  user_roles TEXT NOT NULL, text TEXT NOT NULL,
  state TEXT NOT NULL, reason TEXT, note TEXT, turns INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL DEFAULT 0,
  misread INTEGER NOT NULL DEFAULT 0, judged_turn INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL,
  updated_at REAL NOT NULL) WITHOUT ROWID;
ALTER TABLE turns ADD COLUMN goal INTEGER;
CREATE TABLE pairing_offers(
  platform TEXT NOT NULL, account TEXT NOT NULL, user_id TEXT NOT NULL, display TEXT, chat_id TEXT NOT NULL,
  code_hash TEXT NOT NULL, offered_at REAL NOT NULL, expires_at REAL NOT NULL,
  PRIMARY KEY(platform, account, user_id)) WITHOUT ROWID;
CREATE TABLE paired(
  platform TEXT NOT NULL, account TEXT NOT NULL, user_id TEXT NOT NULL, display TEXT, role INTEGER NOT NULL,
  paired_by TEXT NOT NULL, paired_at REAL NOT NULL, PRIMARY KEY(platform, account, user_id)) WITHOUT ROWID;
ALTER TABLE inbox ADD COLUMN user_roles TEXT;
ALTER TABLE turns ADD COLUMN role INTEGER NOT NULL DEFAULT 2;
CREATE TABLE conversation_titles(
  session_id TEXT NOT NULL, generation INTEGER NOT NULL, title TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY(session_id, generation)) WITHOUT ROWID;
ALTER TABLE sessions ADD COLUMN last_generation INTEGER NOT NULL DEFAULT 1;
UPDATE sessions SET last_generation=generation;
ALTER TABLE turns ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN results_to_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN results_chars INTEGER NOT NULL DEFAULT 0;
"""

_V3 = """
CREATE TABLE dead_chats(
  platform TEXT NOT NULL, account TEXT NOT NULL, chat_id TEXT NOT NULL, reason TEXT NOT NULL, since REAL NOT NULL,
  PRIMARY KEY(platform, account, chat_id)) WITHOUT ROWID;
ALTER TABLE outbox ADD COLUMN file TEXT;
CREATE INDEX outbox_file ON outbox(file) WHERE file IS NOT NULL;
"""

MIGRATIONS: tuple[str, ...] = (_V1, _V2, _V3)
"""Migration n (from 1) brings the file to ``user_version`` n."""


def prepare(conn: sqlite3.Connection) -> None:
    """Sets the pragmas of a writing connection and asserts those that durability stands on (R23).

    Raises ForeignHome when the file is not ours or newer than this program.
    """
    _refuse_foreign(conn)
    mode = conn.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    conn.execute("PRAGMA synchronous=FULL")
    conn.execute("PRAGMA foreign_keys=OFF")
    conn.execute("PRAGMA temp_store=MEMORY")
    conn.execute("PRAGMA journal_size_limit=16777216")
    conn.execute("PRAGMA wal_autocheckpoint=2000")
    if mode not in ("wal", "memory"):
        raise ForeignHome(f"state.db cannot use WAL here (journal_mode={mode}): use a local file system (R43)")
    migrate(conn)


def refuse_foreign(path: Path | str) -> None:
    """Looks at a file without touching it or what lies beside it. Raises ForeignHome.

    An ordinary connection would fold another program's write-ahead log into its file when it closes. The
    look sees the file without its log, so ``prepare`` looks again.
    """
    if str(path) == ":memory:" or not Path(path).exists():
        return
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as conn:
        try:
            _refuse_foreign(conn)
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"state.db cannot be used: {error}; restore the last good backup") from error


def _refuse_foreign(conn: sqlite3.Connection) -> None:
    ours = conn.execute("PRAGMA application_id").fetchone()[0]
    version = conn.execute("PRAGMA user_version").fetchone()[0]
    tables = conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if ours != APPLICATION_ID and (tables or version or ours):
        raise ForeignHome(
            "state.db in this home belongs to another program; use another HERMES_HOME, "
            "or bring its data over with `hermes import`"
        )
    if version > len(MIGRATIONS):
        raise ForeignHome(
            f"state.db has schema {version}, this Hermes knows up to {len(MIGRATIONS)}: "
            "start the newer version again, or restore a backup"
        )


def migrate(conn: sqlite3.Connection) -> None:
    """Brings the file up to the newest version, each migration in its own transaction."""
    conn.execute(f"PRAGMA application_id={APPLICATION_ID}")
    version = conn.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        conn.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={number};\nCOMMIT;")
