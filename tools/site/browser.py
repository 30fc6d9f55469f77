"""The site in Chromium: every page at two widths, light and dark.

    python -m tools.site.browser build/site [--shots FOLDER]      # `make docs-browser` builds the site first

Looks for pages that are wider than the window, messages of the console, requests that fail, links to pages and places that do
not exist, text that is hard to read on its background, and types the questions of `tools.site.search` into the search.
"""

import argparse
import base64
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag

from tools.site.devtools import Tab, browser, program
from tools.site.search import QUESTIONS

WIDTHS: Final = (400, 1280)
#: Names of the theme by what the reader prefers.
SCHEMES: Final = {"light": "default", "dark": "slate"}
#: Contrast of text that the guidelines for accessible content (WCAG 2, level AA) ask for.
CONTRAST: Final = 4.5
_MEASURE: Final = Path(__file__).with_name("measure.js").read_text().replace("__CONTRAST__", str(CONTRAST))


class _Handler(SimpleHTTPRequestHandler):
    #: Give an empty index of the search, which each page reads in some megabytes.
    without_search = True

    def do_GET(self) -> None:
        if self.without_search and self.path.startswith("/search/search_index.json"):
            whole = json.loads(Path(self.translate_path("/search/search_index.json")).read_text())
            index = json.dumps({**whole, "docs": whole["docs"][:1]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(index)))
            self.end_headers()
            self.wfile.write(index)
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


class _WithSearch(_Handler):
    without_search = False


@contextmanager
def served(folder: Path, *, search: bool) -> Iterator[str]:
    """Serve a folder at a free port of this machine, and give its address."""
    handler = partial(_WithSearch if search else _Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages(site: Path) -> list[str]:
    """Return the addresses of all pages, relative to the site."""
    folders = [path.relative_to(site).parent for path in site.rglob("index.html")]
    return sorted("" if folder == Path() else folder.as_posix() for folder in folders)


def look(tab: Tab, url: str) -> tuple[list[str], dict[str, Any]]:
    """Return what is wrong with a page, and its links and places."""
    tab.visit(url)
    tab.evaluate("document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important }</style>')")
    tab.evaluate(_MEASURE)
    found: list[str] = []
    for width in WIDTHS:
        tab.resize(width)
        found += [f"at {width} pixels: {what}" for what in tab.evaluate("measure.wide()")]
    for scheme in SCHEMES.values():
        tab.evaluate(f"document.body.dataset.mdColorScheme = {scheme!r}")
        pale = tab.evaluate("measure.pale()")
        found += [f"{scheme}: contrast {row['contrast']} of {row['text']!r} in {row['element']}" for row in pale]
    return found + messages(tab), tab.evaluate("({ links: measure.links(), places: measure.places() })")


def preferences(tab: Tab, root: str) -> list[str]:
    """Return the preferences of readers that do not get their scheme."""
    found = []
    for prefers, scheme in SCHEMES.items():
        tab.visit("about:blank")  # the page that is left would still write what the next one reads
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": prefers}])
        tab.visit(root)
        got = tab.evaluate("document.body.dataset.mdColorScheme")
        if got != scheme:
            found.append(f"who prefers {prefers} must get the scheme {scheme}, got {got}")
    return found


def messages(tab: Tab) -> list[str]:
    """Return what a page has written to the console, its exceptions, and its requests that failed."""
    found = []
    for name, event in tab.events:
        if name == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            found.append(f"console: {[part.get('value') for part in event['args']]}")
        elif name == "Runtime.exceptionThrown":
            found.append(f"exception: {event['exceptionDetails']['text']}")
        elif name == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            found.append(f"log: {event['entry']['text']} {event['entry'].get('url', '')}")
        elif name == "Network.responseReceived" and event["response"]["status"] >= 400:
            found.append(f"answer {event['response']['status']} for {event['response']['url']}")
    return found


def dead_links(site: Path, root: str, seen: dict[str, dict[str, Any]]) -> list[str]:
    """Return the links whose page or place does not exist; links to other sites are not followed."""
    found = []
    places = {url: set(page["places"]) for url, page in seen.items()}
    for url, page in seen.items():
        for link in page["links"]:
            target, place = urldefrag(link)
            if not target.startswith(root) or (site / unquote(target.removeprefix(root))).is_file():
                continue
            target = target.removesuffix("index.html")
            if target not in places:
                found.append(f"{url}: the link {link} has no page")
            elif place and unquote(place) not in places[target]:
                found.append(f"{url}: the link {link} has no place")
    return found


def answers(tab: Tab, root: str, width: int) -> list[str]:
    """Type the questions into the search, and return those whose guide is not the first answer."""
    tab.resize(width)
    tab.visit(root)
    tab.evaluate("document.querySelector('label.md-header__button[for=__search]').click()" if width < 600 else "0")
    found = []
    for question, page in QUESTIONS.items():
        tab.evaluate(_TYPE % repr(""))  # else the answers to the question before could be taken for those to this one
        tab.evaluate(_UNTIL % "!link")
        tab.evaluate(_TYPE % repr(question))
        first = tab.evaluate(_UNTIL % "link")
        if first is None or urldefrag(first)[0].partition("?")[0] != root + page:
            found.append(f"search {question!r} at {width} pixels must find {page} first, got {first}")
    return found


_TYPE: Final = """(() => {
  const field = document.querySelector('.md-search__input');
  field.focus();
  field.value = %s;
  for (const name of ['keyup', 'input']) field.dispatchEvent(new Event(name, { bubbles: true }));
})()"""
#: Wait until the first answer meets a condition, at most a minute, as the index is read first, and return its address.
_UNTIL: Final = """new Promise((resolve) => {
  const started = Date.now();
  (function look() {
    const link = document.querySelector('.md-search-result__list a');
    if (%s || Date.now() - started > 60000) resolve(link && link.href);
    else setTimeout(look, 50);
  })();
})"""


def faults(site: Path, tab: Tab, only: Sequence[str], shots: Path | None) -> Iterator[str]:
    """Yield a line for everything that is wrong."""
    seen: dict[str, dict[str, Any]] = {}
    with served(site, search=False) as root:
        yield from preferences(tab, root)
        for page in only or pages(site):
            url = root + page + "/" * bool(page)
            wrong, seen[url] = look(tab, url)
            yield from (f"{page or 'home'}: {what}" for what in wrong)
            if shots is not None:
                shoot(tab, shots, page.replace("/", "_") or "home")
        if not only:
            yield from dead_links(site, root, seen)
    if not only:
        with served(site, search=True) as root:
            for width in WIDTHS:
                yield from answers(tab, root, width)


def shoot(tab: Tab, folder: Path, name: str) -> None:
    """Write pictures of the window, one for each width and scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefers, scheme in SCHEMES.items():
        tab.evaluate(f"document.body.dataset.mdColorScheme = {scheme!r}")
        for width in WIDTHS:
            tab.resize(width)
            png = tab.call("Page.captureScreenshot", format="png")["data"]
            (folder / f"{name}-{prefers}-{width}.png").write_bytes(base64.b64decode(png))


def main() -> None:
    """Look at every page, and end with an error if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("pages", nargs="*", help="pages in place of all, without links and search")
    parser.add_argument("--shots", type=Path, help="a folder for pictures of each page")
    given = parser.parse_args()
    path = program()
    if path is None:
        sys.exit("browser: Chromium must be installed, got none; apt-get install chromium")
    found = 0
    with browser(path) as tab:
        for fault in faults(given.site, tab, given.pages, given.shots):
            found += 1
            sys.stdout.write(fault + "\n")
            sys.stdout.flush()
    number = len(given.pages or pages(given.site))
    sys.stdout.write(f"{number} pages, {len(WIDTHS)} widths, {len(SCHEMES)} schemes: {found} faults\n")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
