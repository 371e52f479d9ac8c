"""A hook of mkdocs: pages at the top of the repository are part of the site, and links to other files become text."""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "extension_example"
BOOSTS = {"cli.md": 0.2, "codes.md": 0.2, "operators.md": 0.2, "runtime.md": 0.2, "models.md": 0.2, "CHANGELOG.md": 0.1}
"""The weight of long lists in the search: a page about a subject comes before its rows there."""
OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside docs/."""
    from mkdocs.structure.files import File

    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    program = (ROOT / "docs" / f"{EXAMPLE}.py").read_text("utf-8")
    content = f"# A complete extension\n\n[passes.md](passes.md) explains it.\n\n```python\n{program}```\n"
    files.append(File.generated(config, f"{EXAMPLE}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page, which are those of the repository, and weigh it for the search."""
    source = page.file.src_uri
    if source in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[source]}
    folder = "" if source in OUTSIDE else posixpath.join("docs", posixpath.dirname(source))

    def rewritten(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(folder, path)).replace(f"{EXAMPLE}.py", f"{EXAMPLE}.md")
        inside = target if target in OUTSIDE else target.removeprefix("docs/")
        if files.get_file_from_path(inside) is None or (target not in OUTSIDE and not target.startswith("docs/")):
            return text  # a file of the repository that the site does not have
        return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(source) or '.')}{anchor})"

    return LINK.sub(rewritten, markdown)
