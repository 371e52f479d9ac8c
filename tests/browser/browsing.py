"""A page in headless Chromium: what it loads, logs or violates is kept, and `close` asserts that there is nothing.

    with Browsing() as browsing:
        shown = browsing.open(folder / "index.html")
        shown.page.get_by_role("button", name="Fit").click()
        shown.close()
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

MISSING = "needs {}: `make test-browser` installs playwright, Chromium is the system's or that of CHROMIUM=path"

WATCH = """
window.seen = {violations: [], dialogs: 0};
document.addEventListener("securitypolicyviolation", (event) => {
  window.seen.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => { window.seen.dialogs += 1; };
"""

IDLE = "document.body?.dataset.ready === 'true' && !document.querySelector('[data-state=\"busy\"]')"
"""The condition that holds once the page has drawn what was requested."""

WAIT = f"""async () => {{
  const end = performance.now() + 20000;
  await new Promise(requestAnimationFrame);
  while (!({IDLE})) {{
    if (performance.now() > end) throw new Error("the page is not drawn after 20 seconds");
    await new Promise(requestAnimationFrame);
  }}
}}"""
"""Waits for it. playwright's own wait_for_function compiles a text, which the policy of the page forbids."""


def chromium() -> str | None:
    """The browser: $CHROMIUM, or the first one of the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def missing() -> str | None:
    """The requirement of a browser test that this machine does not meet, as a sentence; None if it meets all."""
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

    def open(
        self, file: Path, where: str = "", *, idle: bool = True, script: str = "",
        size: tuple[int, int] = (1280, 800), theme: Literal["light", "dark"] = "light",
    ) -> Shown:
        """Open a file, `where` after its address, and wait until it is drawn; `script` runs before the page's."""
        shown = Shown(self.browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme))
        if script:
            shown.page.add_init_script(script)
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
        self.page.evaluate(WAIT)

    def go(self, step: str) -> None:
        """Show a step: click on it in the list of passes."""
        self.page.get_by_label("Passes", exact=True).get_by_role("button", name=step).first.click()
        self.idle()

    def reload(self) -> None:
        """Load the page again."""
        del self.requests[0]
        self.page.reload()
        self.idle()

    def press(self, key: str) -> None:
        """Press a key, and wait until what follows is drawn."""
        self.page.keyboard.press(key)
        self.idle()

    def current_step(self) -> str:
        """The name of the marked row in the list of passes."""
        rows = self.page.get_by_label("Passes", exact=True).locator("[aria-current=step] .row-name")
        return " ".join(rows.all_text_contents())

    def click_edge(self, start: str, end: str) -> None:
        """Select an edge by the beginnings of the names of its ends."""
        edge = self.page.locator(f"g.edge[aria-label^='{start}'][aria-label*=' to {end}']")
        edge.first.dispatch_event("click")
        self.idle()

    def copied(self) -> str:
        """The text that "Copy as text" puts on the clipboard."""
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.get_by_role("button", name="Copy as text").first.click()
        text: str = self.page.evaluate("navigator.clipboard.readText()")
        return text

    def search(self, words: str) -> None:
        """Search, and select the first result."""
        search = self.page.get_by_role("combobox", name="Search")
        search.fill(words)
        search.press("Enter")
        self.idle()

    def box(self, operator: str, name: str) -> Any:
        """The box of a node in the drawing."""
        return self.page.locator(f"g.box[data-op={operator}]", has_text=name)

    def owner(self, title: str) -> Any:
        """The cluster of an open control-flow operation: "Loop trace"."""
        head = self.page.locator(".head text", has_text=re.compile(f"^{re.escape(title)}$"))
        return self.page.locator("g.cluster.owner").filter(has=head)

    def toggle(self, title: str) -> None:
        """Fold a group, or open it."""
        name = re.compile(f"^(Fold|Open) {re.escape(title)}")
        self.page.locator("svg.graph[data-side]").get_by_role("button", name=name).click()
        self.idle()

    @property
    def details(self) -> str:
        """The text of the panel of details, as one line."""
        return " ".join(self.page.get_by_role("region", name="Details").inner_text().split())

    @property
    def explanation(self) -> str:
        """The text of the panel about the step, as one line."""
        return " ".join(self.page.get_by_role("region", name="Explanation").inner_text().split())

    def saved_picture(self) -> str:
        """The file of "Save as SVG"."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save as SVG").click()
        return Path(download.value.path()).read_text("utf-8")

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
