"""Reading the file itself: what may stand where a configuration belongs, each with its own sentence."""

from __future__ import annotations

import stat
from pathlib import Path

from hermes.config.document import MAX_BYTES, Unreadable
from hermes.config.errors import Problem

_ALLOWED = "a readable file of UTF-8 text"


def read_source(path: Path | None, default: Path) -> tuple[str, str] | None:
    """(text, name) of the file; None when no ``path`` was given and the default one does not exist.

    Raises Unreadable.
    """
    file = default if path is None else path
    name = str(file)
    try:
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _refusal(name, "it is a directory", "name the file in it, e.g. config.yaml")
        if not stat.S_ISREG(mode):
            raise _refusal(name, "it is no regular file (a device, pipe or socket)", "name a regular file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if path is None and not file.is_symlink():
            return None
        what = "a link to a file that does not exist" if file.is_symlink() else "there is no such file"
        raise _refusal(name, what, "check the name, or leave --config out to use defaults") from None
    except PermissionError:
        raise _refusal(name, "it may not be read by this user", "chmod 600, or chown to this user") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "the name cannot be used"
        raise _refusal(name, f"it cannot be read: {reason}", "check the name and the disk") from None
    return _decode(raw, name), name


def _decode(raw: bytes, name: str) -> str:
    if len(raw) > MAX_BYTES:
        raise _refusal(
            name, f"it is larger than {MAX_BYTES} bytes", "shorten it", f"at most {MAX_BYTES} bytes"
        )
    if not raw.strip():
        found = "the file is empty" if not raw else "the file is empty (nothing but blanks)"
        raise _refusal(
            name,
            found,
            "delete the file to use defaults, or start from config.example.yaml",
            "a mapping of sections",
        )
    if raw[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise _refusal(name, "it is UTF-16", "save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refusal(name, "bytes that are not UTF-8", "save the file as UTF-8", line=line) from None
    for at, char in enumerate(text):
        if not char.isprintable() and char not in "\n\r\t\x85\u2028\u2029\ufeff" and _is_control(char):
            what = "a NUL character" if char == "\0" else "a control character"
            raise _refusal(name, what, "remove it", line=text.count("\n", 0, at) + 1)
    return text.replace("\r\n", "\n")


def _is_control(char: str) -> bool:
    code = ord(char)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in {0xFFFE, 0xFFFF}


def _refusal(name: str, found: str, cure: str, allowed: str = _ALLOWED, line: int = 0) -> Unreadable:
    return Unreadable(Problem(name, line, "", found, allowed, cure))
