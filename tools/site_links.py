"""Links of a built site that lead nowhere: `python tools/site_links.py FOLDER`.

Sphinx checks the references of pages; this reads what it wrote, with all that themes, raw HTML and
generated pages add. Addresses of other sites are not asked: the check needs no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The targets and the links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value for key, value in attrs if value}
        self.targets |= {given[key] for key in ("id", "name") if key in given}
        self.links += [given[key] for key in ("href", "src") if key in given]


def broken_links(folder: Path) -> list[str]:
    """A line for each link to a file or place in a page that is not there, sorted by page."""
    folder = folder.resolve()
    pages = {path: _Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            if not target.is_relative_to(folder) or not target.exists():
                broken.append(f"{path.relative_to(folder)}: no file for {link}")
            elif place and target in pages and place not in pages[target].targets:
                broken.append(f"{path.relative_to(folder)}: no such place: {link}")
    return broken


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = broken_links(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
