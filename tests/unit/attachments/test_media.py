"""The media store: by hash, complete or not there, found again after a crash, and gone when its time is over."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.attachments import Fetched, ImageLimits
from hermes.core.events import AttachmentRef
from hermes.core.ids import InboxId
from hermes.core.principals import PrincipalId
from hermes.core.transcript import ImageRef
from hermes.runtime.offload import Offload
from hermes.store.database import InlineDatabase
from hermes.store.media import SqliteMedia
from tests.pictures import noise, picture, size_of

ROW = InboxId(1)
PHOTO = AttachmentRef("photo", "r1", None, "image/jpeg", 10)
TEXT = AttachmentRef("document", "r2", "a.txt", "text/plain", 10)


@pytest.fixture
def db() -> InlineDatabase:
    return InlineDatabase()


@pytest.fixture
async def media(db: InlineDatabase, tmp_path: Path) -> AsyncIterator[SqliteMedia]:
    offload = Offload()
    yield SqliteMedia(db, tmp_path / "media", offload)
    offload.close()


def files(tmp: Path) -> list[Path]:
    return sorted(path for path in (tmp / "media").glob("*/*"))


async def test_a_file_is_named_by_its_hash_and_only_its_owner_reads_it(media: SqliteMedia, tmp_path: Path) -> None:
    kept = await media.keep(ROW, TEXT, b"content", 1.0)
    [file] = files(tmp_path)
    assert kept.sha256 == hashlib.sha256(b"content").hexdigest() == file.name
    assert (kept.size, kept.mime, kept.image) == (7, "text/plain", None)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == stat.S_IMODE(file.parents[1].stat().st_mode) == 0o700
    assert await media.read(kept.sha256) == b"content"


async def test_the_same_file_sent_twice_is_kept_once(media: SqliteMedia, tmp_path: Path) -> None:
    first = await media.keep(ROW, TEXT, b"content", 1.0)
    assert await media.keep(InboxId(2), PHOTO, b"content", 2.0) == first.__class__(
        first.sha256, 7, "image/jpeg"
    )
    assert len(files(tmp_path)) == 1


async def test_a_file_that_is_cut_off_on_the_disk_is_written_again(media: SqliteMedia, tmp_path: Path) -> None:
    kept = await media.keep(ROW, TEXT, b"content", 1.0)
    files(tmp_path)[0].write_bytes(b"con")
    assert await media.known([ROW]) == {}
    await media.keep(ROW, TEXT, b"content", 2.0)
    assert await media.read(kept.sha256) == b"content"


async def test_a_later_attempt_finds_what_an_earlier_one_kept(media: SqliteMedia) -> None:
    photo = await media.keep(ROW, PHOTO, picture(), 1.0)
    await media.failed(ROW, TEXT, "it was too large", 2.0)
    assert photo.image == ImageRef(photo.sha256, "image/png", len(picture()), 40, 30)
    assert await media.known([ROW, InboxId(5)]) == {
        (ROW, "r1"): Fetched(photo), (ROW, "r2"): Fetched(None, "it was too large")
    }  # fmt: skip


async def test_a_file_that_is_gone_counts_as_unknown(media: SqliteMedia, tmp_path: Path) -> None:
    kept = await media.keep(ROW, TEXT, b"content", 1.0)
    files(tmp_path)[0].unlink()
    assert await media.known([ROW]) == {}
    assert await media.read(kept.sha256) is None


async def test_a_folder_that_takes_nothing_is_an_error_and_no_row(
    media: SqliteMedia, db: InlineDatabase, tmp_path: Path
) -> None:
    (tmp_path / "media").write_bytes(b"in the way")
    with pytest.raises(NotADirectoryError):
        await media.keep(ROW, TEXT, b"content", 1.0)
    assert db.conn.execute("SELECT count(*) FROM attachments").fetchone() == (0,)


def receive(db: InlineDatabase, row: int, principal: str) -> None:
    db.conn.execute(
        "INSERT INTO inbox(id, platform, account, dedup_key, principal_id, raw, state, received_at) "
        "VALUES (?, 'p', 'a', ?, ?, '{}', 'done', 0)",
        (row, str(row), principal),
    )


async def test_only_who_sent_a_file_finds_it_by_its_id(media: SqliteMedia, db: InlineDatabase) -> None:
    receive(db, 1, "ada")
    receive(db, 2, "bob")
    kept = await media.keep(ROW, TEXT, b"content", 1.0)
    found = await media.find(PrincipalId("ada"), kept.sha256[:12])
    assert found is not None
    assert (found[0].name, found[1]) == ("a.txt", kept)
    assert await media.find(PrincipalId("bob"), kept.sha256[:12]) is None
    for wrong in (kept.sha256[:7], "%" * 12, "_" * 12, "zz" * 6, ""):
        assert await media.find(PrincipalId("ada"), wrong) is None


async def test_pictures_are_loaded_whole_or_smaller_and_what_is_gone_is_left_out(
    media: SqliteMedia, tmp_path: Path
) -> None:
    content = noise(200, 100)
    kept = await media.keep(ROW, PHOTO, content, 1.0)
    other = await media.keep(ROW, TEXT, picture(10, 10), 1.0)
    assert kept.image is not None
    assert other.image is not None
    whole = await media.load([kept.image, other.image])
    assert whole[kept.sha256].data == content
    (tmp_path / "media" / other.sha256[:2] / other.sha256).unlink()
    small = await media.load([kept.image, other.image], ImageLimits(side=50))
    assert {name: size_of(data.data) for name, data in small.items()} == {kept.sha256: (50, 25)}
    (tmp_path / "media" / kept.sha256[:2] / kept.sha256).unlink()
    assert await media.load([kept.image], ImageLimits(side=50)) == small, "made once"


async def test_files_go_when_their_time_is_over_with_what_a_crash_left_half_written(
    media: SqliteMedia, db: InlineDatabase, tmp_path: Path
) -> None:
    old = await media.keep(ROW, TEXT, b"old", 1.0)
    new = await media.keep(InboxId(2), TEXT, b"new", 1000.0)
    half = tmp_path / "media" / old.sha256[:2] / ".part-abc"
    half.write_bytes(b"ha")
    for path in (tmp_path / "media" / old.sha256[:2] / old.sha256, half):
        os.utime(path, (1.0, 1.0))
    assert await media.sweep(500.0, 1100.0) == 3
    assert [path.name for path in files(tmp_path)] == [new.sha256]
    assert db.conn.execute("SELECT inbox_id FROM attachments").fetchall() == [(2,)]
    assert await media.sweep(500.0, 1100.0) == 0


async def test_being_sent_again_makes_a_file_young(media: SqliteMedia, tmp_path: Path) -> None:
    await media.keep(ROW, TEXT, b"content", 1.0)
    os.utime(files(tmp_path)[0], (1.0, 1.0))
    await media.keep(InboxId(2), TEXT, b"content", 1000.0)
    assert await media.sweep(500.0, 1100.0) == 1, "the old row alone"
    assert len(files(tmp_path)) == 1
