"""Nothing that a person, a model, a tool or a configuration says is run by the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.screen import Screen
from tests.wire.gateway.harness import Gateway, Model
from tests.wire.web.page import rehearsing

pytestmark = pytest.mark.browser

RUN = "window.hit=1;alert(1)"
HOSTILE = (
    f"<img src=x onerror='{RUN}'>",
    f"<script>{RUN}</script>",
    f"<svg onload='{RUN}'></svg>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"[click](javascript:{RUN})",
    f"[click](JaVa\tScript:{RUN})",
    f"[click](&#106;avascript:{RUN})",
    f"[click](data:text/html,<script>{RUN}</script>)",
    f'![x](x" onerror="{RUN})',
    f'[x](https://a.example/"onmouseover="{RUN})',
    f'<https://a.example/"onclick="{RUN}>',
    f"```html\n</code></pre><script>{RUN}</script>\n```",
    f"| <img src=x onerror={RUN}> |\n|---|\n| <style>*{{display:none}}</style> |",
    "<form action=https://evil.example><button id=send>Send</button></form>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content=0;url=https://evil.example/>",
)
NAME = f"<img src=x onerror={RUN}>"


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """A model that says what it is told to say."""
    simulator = Model()
    yield simulator
    simulator.close()


@pytest.fixture(scope="module")
def hostile(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose model has a hostile name."""
    provider = {"kind": "openai", "base_url": model.where["base_url"], "api_key": "sk-0123456789"}
    settings = {"model": {"provider": "sim", "model": NAME}, "providers": {"sim": provider}}
    home: Path = tmp_path_factory.mktemp("hostile") / "home"
    running = rehearsing(home, settings).start()
    yield running
    running.close()


def _expect_nothing_ran(screen: Screen) -> None:
    assert screen.page.evaluate("window.hit") is None
    assert screen.faults == []
    assert screen.page.locator("#lines :is(script, img, svg, iframe, form, style, base, meta)").count() == 0
    links = screen.page.locator("#lines a").evaluate_all("all => all.map((a) => a.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:"}
    handlers = screen.page.locator("#lines *").evaluate_all(
        "all => all.flatMap((e) => e.getAttributeNames()).filter((name) => name.startsWith('on') || name === 'style')"
    )
    assert handlers == []


def test_what_a_person_and_a_model_say_is_text(hostile: Gateway, model: Model, visit: Visit) -> None:
    screen = visit(hostile)
    screen.wait_ready()
    for number, words in enumerate(HOSTILE):
        model.script({"text": f"{words}\n\nend of {number}", "pieces": 3})
        screen.say(words)
        screen.wait_line(f"end of {number}")
        _expect_nothing_ran(screen)
    screen.page.reload()  # now from the store
    screen.wait_line(f"end of {len(HOSTILE) - 1}")
    for link in screen.page.locator("#lines a").all():
        link.hover()
    _expect_nothing_ran(screen)
    assert screen.page.url.startswith(hostile.url)


def test_notices_tools_and_the_state_panel_are_text(hostile: Gateway, model: Model, visit: Visit) -> None:
    screen = visit(hostile)
    screen.wait_ready()
    expect(screen.page.locator("#models")).to_contain_text("<img src=x")
    model.script(
        {"kind": "error", "status": 429, "message": NAME},
        {"tool": NAME, "arguments": {"path": NAME}},
        {"text": "done with all of it"},
    )
    screen.say("go")
    screen.wait_line("done with all of it")
    expect(screen.page.locator("#lines .notice").first).to_contain_text("<img src=x")
    expect(screen.page.locator("#lines .notice.tool")).to_contain_text("<img src=x")
    _expect_nothing_ran(screen)
    assert screen.page.locator("#panel img").count() == 0
