"""The site: weights of searches, entries without the members of their bases, and what the built site answers."""

import re

import pytest

from tests.markdown import ROOT
from tools.site import search
from tools.site.references import entries, with_members

SITE = ROOT / "build" / "site"
built = pytest.mark.skipif(not (SITE / "search" / "search_index.json").is_file(), reason="make docs-site builds the site")


def test_guides_count_more_than_the_reference_and_that_more_than_sources():
    order = ["howto/onnx.md", "api/data.md", "reference/loss.md", "architecture.md", "repository/CHANGELOG.md"]
    weights = [search.weight(uri) for uri in order]
    assert weights == sorted(weights, reverse=True) and len(set(weights)) == len(weights)
    assert search.weight("serving.md") == search.weight("howto/serving.md")


def test_the_first_answers_are_pages_that_exist():
    for page in search.QUESTIONS.values():
        assert (ROOT / "docs" / f"{page.rstrip('/')}.md").is_file(), page


def test_solvers_show_the_methods_of_their_base_once():
    folder = ROOT / "docs" / "api"
    classes = entries(folder)
    page = with_members((folder / "solvers.md").read_text(encoding="utf-8"), classes)
    assert "::: nn_core.solvers.base.Solver\n\n" in page  # with all of its members
    assert "::: nn_core.solvers.Adam\n    options:\n      inherited_members: []\n" in page
    assert page.count("The other members are those of [`Solver`][nn_core.solvers.base.Solver].") > 20


def test_members_of_a_base_without_an_entry_stay():
    class Base:
        def shared(self):
            pass

    class Middle(Base):
        def further(self):
            pass

    class Leaf(Middle):
        def own(self):
            pass

    page = "::: a.Leaf\n\n::: a.Base\n\n::: a.function\n"
    assert with_members(page, {"a.Base": Base, "a.Leaf": Leaf}) == (
        "::: a.Leaf\n    options:\n      inherited_members: ['further']\n\n"
        "The other members are those of [`Base`][a.Base].\n\n::: a.Base\n\n::: a.function\n"
    )


@built
@pytest.mark.slow
def test_the_search_of_the_site_finds_guides_first():
    assert search.faults(SITE) == []


@built
@pytest.mark.slow
def test_methods_of_solvers_are_described_once():
    text = (SITE / "api" / "solvers" / "index.html").read_text(encoding="utf-8")
    assert len(re.findall(r'id="nn_core\.solvers\.[\w.]+\.clip_grad_by_norm"', text)) == 1
