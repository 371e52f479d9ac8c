"""Take the pictures of docs/dump.md anew, each in light and in dark: docs/pictures/NAME-light.png and NAME-dark.png.

    python tools/page_pictures.py              # all of them; needs the group `browser` and Chromium
    python tools/page_pictures.py steps tile

The pages are those of tests/browser/made_pages.py. Look at the pictures before you commit them.
"""

import argparse
import base64
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.browsing import Browsing, Shown  # noqa: E402
from tests.browser.made_pages import MadePages  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
SIZE = (1200, 700)
THEMES = ("light", "dark")


def steps(shown: Shown) -> None:
    """A step in colour, with the node that it made."""
    shown.go("ScanLowering")
    shown.search("op:Loop all")


def side(shown: Shown) -> None:
    """Before and after, without the panels."""
    shown.go("ScanLowering")
    shown.press("p")
    shown.press("b")
    shown.press("2")


def tile(shown: Shown) -> None:
    """A node of the graph as written, and its history."""
    shown.go("As written")
    shown.search("op:Tile")


def overview(shown: Shown) -> None:
    """The first picture of a large model."""


def differences(shown: Shown) -> None:
    """The differences of a loop by iteration."""
    shown.search("op:TensorIterator")


PICTURES: dict[str, tuple[str, Callable[[Shown], None]]] = {
    "steps": ("recurrent", steps),
    "overview": ("modules", overview),
    "side": ("recurrent", side),
    "tile": ("recurrent", tile),
    "differences": ("heated", differences),
}
"""Name -> the page, and what is done there."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all if none is given: {', '.join(PICTURES)}")
    names = parser.parse_args().names or list(PICTURES)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browsing() as browsing:
        pages = MadePages(Path(folder))
        for name in names:
            page, act = PICTURES[name]
            for theme in THEMES:
                take(browsing, getattr(pages, page), act, FOLDER / f"{name}-{theme}.png", theme)


def take(browsing: Browsing, page: Path, act: Callable[[Shown], None], file: Path, theme: str) -> None:
    """One picture, without the ring around what has the focus and without messages that pass."""
    shown = browsing.open(page, size=SIZE, theme="dark" if theme == "dark" else "light")
    act(shown)
    shown.page.evaluate("document.activeElement?.blur()")
    shown.page.mouse.move(2, 2)
    shown.page.wait_for_timeout(2500)
    file.write_bytes(with_palette(pixels(browsing, shown.page.screenshot())))
    shown.close()
    print(f"{file.relative_to(ROOT)}  {file.stat().st_size / 1000:.0f} kB")


PIXELS = """async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  let text = "";
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
  return [image.height, image.width, btoa(text)];
}"""
"""Decodes a picture in an empty page."""


def pixels(browsing: Browsing, png: bytes) -> np.ndarray:
    """The colours of a PNG: height, width, 3."""
    page = browsing.browser.new_page()
    height, width, text = page.evaluate(PIXELS, f"data:image/png;base64,{base64.b64encode(png).decode()}")
    page.close()
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3]


def with_palette(image: np.ndarray) -> bytes:
    """A PNG with 256 colours; each other colour becomes the nearest of them."""
    height, width, _ = image.shape
    colours, places, counts = np.unique(image.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    wide = colours.astype(np.int64)
    far, nearest, palette = np.full(len(wide), 3 * 255**2), np.zeros(len(wide), np.uint8), np.zeros((256, 3), np.uint8)
    for index in range(min(256, len(wide))):  # the colour that is missed most: frequent, and far from those taken
        palette[index] = colours[(found := int((counts * far).argmax()))]
        distance = ((wide - wide[found]) ** 2).sum(axis=1)
        nearest[distance < far] = index
        far = np.minimum(far, distance)
    indices = nearest[places.reshape(-1)].reshape(height, width)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), indices], axis=1)  # filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    content = zlib.compress(rows.tobytes(), 9)
    chunks = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", content), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


if __name__ == "__main__":
    main()
