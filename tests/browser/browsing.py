"""A page in headless Chromium: what it loads, logs or violates is kept, and `close` asserts that there is nothing.

    with Browsing() as browsing:
        shown = browsing.open(folder / "index.html")
        shown.page.get_by_role("button", name="Fit").click()
        shown.close()
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

MISSING = "needs {}: `make test-browser` installs playwright, Chromium is the system's or that of CHROMIUM=path"

WATCH = """
window.seen = {violations: [], dialogs: 0};
document.addEventListener("securitypolicyviolation", (event) => {
  window.seen.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => { window.seen.dialogs += 1; };
"""

IDLE = "document.body.dataset.ready === 'true' && !document.querySelector('[data-busy=\"true\"]')"
"""What holds once the page has drawn what it was asked for."""


def chromium() -> str | None:
    """The browser: $CHROMIUM, or the first one of the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def missing() -> str | None:
    """What a test in a browser lacks on this machine, as a sentence; None if it has everything."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return MISSING.format("playwright")
    return None if chromium() else MISSING.format("Chromium")


class Browsing:
    """One browser for all tests; each page has a context of its own."""

    def __enter__(self) -> Browsing:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.browser = self._playwright.chromium.launch(
            executable_path=chromium(), args=["--disable-background-networking", "--disable-component-update", *root]
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.browser.close()
        self._playwright.stop()

    def open(self, file: Path, where: str = "", *, idle: bool = True, **context: Any) -> Shown:
        """Open a file, with `where` behind its address, and wait until it is drawn."""
        shown = Shown(self.browser.new_context(viewport={"width": 1280, "height": 800}, **context))
        shown.page.goto(file.as_uri() + where)
        if idle:
            shown.idle()
        return shown


class Shown:
    """A page, and everything that it did and should not do."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.page = context.new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.page.add_init_script(WATCH)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))

    def idle(self) -> None:
        """Wait until everything that was asked for is drawn."""
        self.page.wait_for_function(IDLE)

    def faults(self) -> list[str]:
        """Requests for other files, messages on the console, violations of the policy, dialogs."""
        seen = self.page.evaluate("window.seen")
        outside = [url for url in self.requests if not url.startswith(("file:", "blob:", "data:"))]
        files = [url for url in self.requests if url.startswith("file:")][1:]
        dialogs = [f"{seen['dialogs']} dialogs"] if seen["dialogs"] else []
        return [*outside, *files, *self.messages, *seen["violations"], *dialogs]

    def close(self) -> None:
        """Close the page; it has no faults."""
        faults = self.faults()
        self.context.close()
        assert not faults, "\n".join(faults)
