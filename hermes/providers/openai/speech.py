"""``/audio/transcriptions``: one recording, as text.

Source: https://platform.openai.com/docs/api-reference/audio/createTranscription; whisper.cpp, vLLM, Groq and others
speak it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import httpx2
import openai

from hermes.core.failures import FaultKind
from hermes.providers.answers import WrongAnswer
from hermes.providers.facts import CallProgress
from hermes.providers.limits import CallClock, CallLimits

MAX_ANSWER = 2 * 2**20
"""Bytes of an answer: hours of speech."""


async def transcribe(
    client: openai.AsyncOpenAI,
    call: CallProgress,
    limits: CallLimits,
    recording: tuple[str, bytes, str],
    key: str | None,
) -> str:
    """The words of a recording (file name, bytes, MIME type).

    Raises LimitReached, WrongAnswer and whatever the SDK raises.
    """
    signed = {"Authorization": f"Bearer {key}"} if key else {}
    async with CallClock(limits):
        answered = await client.post(
            "/audio/transcriptions",
            cast_to=httpx2.Response,
            body={"model": call.model, "response_format": "json"},
            files=[("file", recording)],
            options={"headers": {"Content-Type": "multipart/form-data", **signed}},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        response = cast("httpx2.Response", answered)
        call.answered(response)
        try:
            return _text(await _read(response))
        finally:
            await response.aclose()


async def _read(response: httpx2.Response) -> bytes:
    found = bytearray()
    async for piece in response.aiter_bytes():
        found += piece
        if len(found) > MAX_ANSWER:
            raise WrongAnswer(FaultKind.WRONG_TYPE, f"more than {MAX_ANSWER} bytes in place of a transcription")
    return bytes(found)


def _text(content: bytes) -> str:
    """``{"text": …}``; some servers answer with the bare text."""
    shown = content.decode("utf-8", "replace")
    try:
        body = json.loads(shown)
    except ValueError:
        if shown.lstrip().startswith("<"):
            raise WrongAnswer(FaultKind.WRONG_TYPE, "a page in place of a transcription", shown) from None
        return shown
    if isinstance(body, Mapping) and isinstance(body.get("text"), str):
        return str(body["text"])
    raise WrongAnswer(FaultKind.BAD_JSON, "no text in the transcription", body)
