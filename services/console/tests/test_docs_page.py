"""The API's description as a page: every operation with its line for the shell, offline, without a token."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.tests.conftest import RunningConsole
from services.tests.browser.chromium import chromium, open_page

pytestmark = pytest.mark.browser
WIDTHS = [320, 800, 1440, 2560]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser, console: RunningConsole) -> Iterator[Page]:
    page, seen = open_page(browser, console.url)
    page.goto(f"{console.url}docs")
    expect(page.locator("#model-State")).to_be_attached()
    yield page
    assert seen.errors == []
    assert seen.outside == []
    page.close()


def described(client: httpx.Client) -> dict[str, Any]:
    schema: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    return schema


def test_every_operation_is_there_with_its_parts(page: Page, client: httpx.Client) -> None:
    schema = described(client)
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            panel = page.locator(f"#{about['operationId']}")
            expect(panel.locator("h3")).to_have_text(f"{method.upper()} {path}")
            for parameter in about.get("parameters", []):
                expect(panel.locator("dt", has_text=parameter["name"]).first).to_be_attached()
            for status in about["responses"]:
                expect(panel.locator("code", has_text=re.compile(f"^{status}$"))).to_be_attached()
            expect(panel.locator("pre")).to_contain_text("curl ")
    for name in schema["components"]["schemas"]:
        expect(page.locator(f"#model-{name}")).to_be_attached()


def test_the_lines_for_the_shell(page: Page, console: RunningConsole, client: httpx.Client) -> None:
    url = console.url.rstrip("/")
    token = '-H "X-MAHE-Token: $TOKEN"'
    lines = {
        "getHealth": f'curl "{url}/healthz"',
        "pauseRun": f'curl {token} -X POST "{url}/api/v1/runs/$RUN/pause"',
        "streamEvents": f'curl {token} -N "{url}/api/v1/events"',
        "downloadCheckpoint": f'curl {token} -OJ "{url}/api/v1/runs/$RUN/checkpoints/$VERSION"',
    }
    for operation, line in lines.items():
        expect(page.locator(f"#{operation} pre")).to_have_text(line)
    example = described(client)["components"]["schemas"]["RunRequest"]["examples"][0]
    text = page.locator("#createRun pre").inner_text()
    assert json.loads(text.split("-d '")[1].partition("'")[0]) == example


def test_a_link_leads_to_the_model_by_keyboard(page: Page) -> None:
    link = page.locator("#createRun a", has_text="RunRequest")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#model-RunRequest$"))
    expect(page.locator("#model-RunRequest")).to_be_in_viewport()
    expect(page.locator("#model-RunRequest dt", has_text="k_steps_max")).to_contain_text("default 500")


def test_every_link_within_the_page_leads_somewhere(page: Page) -> None:
    nowhere = page.evaluate(
        """() => [...document.querySelectorAll('a[href^="#"]')].map((one) => one.getAttribute("href").slice(1))
            .filter((id) => !document.getElementById(id))"""
    )
    assert nowhere == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_a_description_that_cannot_be_read_is_said(page: Page) -> None:
    page.route("**/docs/openapi.json", lambda route: route.fulfill(status=500))
    page.reload()
    expect(page.locator("#fault")).to_contain_text("The description could not be read (docs/openapi.json: 500).")
