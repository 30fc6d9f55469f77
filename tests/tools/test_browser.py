"""The look at the site in Chromium: it finds the faults of a page that has them, and none in one that has not."""

import pytest

from tools.site import browser, devtools

CHROMIUM = devtools.program()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
PAGE = """<!DOCTYPE html><html><head><title>t</title><link rel="icon" href="data:,">
<style>[data-md-color-scheme=slate] {{ background: #222; color: #ddd }} body {{ margin: 8px }}
a {{ color: inherit }}</style></head>
<body data-md-color-scheme="default"><article><h1 id="top">Title</h1>{}</article></body></html>"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return what is wrong with a good page and a bad one, and the dead links of both."""
    site = tmp_path_factory.mktemp("site")
    good = '<p>Words <a href="bad/">there</a>, <a href="#top">up</a></p><pre style="overflow: auto">' + "x" * 400 + "</pre>"
    bad = (
        '<p style="color: #aaa">pale</p><div style="width: 600px">wide</div><a href="../nowhere/">a</a>'
        '<a href="../#gone">b</a>'
        '<script>console.error("broken"); fetch("missing.json")</script>'
    )
    (site / "bad").mkdir()
    (site / "index.html").write_text(PAGE.format(good))
    (site / "bad" / "index.html").write_text(PAGE.format(bad))
    with browser.served(site, search=True) as root, devtools.browser(CHROMIUM) as tab:
        pages = {
            root + page + "/" * bool(page): browser.look(tab, root + page + "/" * bool(page)) for page in browser.pages(site)
        }
    links = browser.dead_links(site, root, {url: measured for url, (_, measured) in pages.items()})
    return [wrong for wrong, _ in pages.values()], [link.replace(root, "/") for link in links]


def test_a_good_page_has_no_faults(seen):
    assert seen[0][0] == []


def test_faults_are_found(seen):
    text = "\n".join(seen[0][1])
    assert "at 400 pixels: <div> ends at 608: wide" in text and "at 1280" not in text
    assert "default: contrast 2.32 of 'pale'" in text
    assert "console: ['broken']" in text
    assert "answer 404" in text and "missing.json" in text


def test_dead_links_are_found(seen):
    assert sorted(seen[1]) == ["/bad/: the link /#gone has no place", "/bad/: the link /nowhere/ has no page"]
