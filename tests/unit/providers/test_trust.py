"""Where the certificates come from that a server is checked against."""

from __future__ import annotations

import ssl
from pathlib import Path

from hermes.providers.aiohttp_transport import has_certificates


def paths(cafile: str | None, capath: Path | None) -> ssl.DefaultVerifyPaths:
    return ssl.DefaultVerifyPaths(cafile, str(capath) if capath else None, "", "", "", "")


def test_a_file_or_a_filled_folder_is_a_store(tmp_path: Path) -> None:
    assert has_certificates(paths("ca.pem", None))
    (tmp_path / "1234.0").touch()
    assert has_certificates(paths(None, tmp_path))


def test_an_empty_folder_or_nothing_is_none(tmp_path: Path) -> None:
    assert not has_certificates(paths(None, tmp_path))
    assert not has_certificates(paths(None, None))
