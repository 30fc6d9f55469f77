"""Hooks of MkDocs: files outside of docs/ that pages link to become pages of the site, and tutorials show what they print.

The pages of the functions are made from the specification.

``make docs-site`` runs ``python -m tools.site.tutorials`` first, which writes the outputs and pictures of the tutorials.
"""

import functools
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site.function_pages import overview, pages
from tools.site.references import entries, with_members
from tools.site.search import weight

ROOT = Path(__file__).resolve().parents[2]
#: Outputs and pictures of the tutorials.
RUNS = ROOT / "build" / "tutorials"
TUTORIALS = ROOT / "examples" / "tutorials"
#: Modules that the tutorials share.
_SHARED = ("pictures", "tiny_digits", "tutorial")
#: Folder of the site for files of the repository.
REPOSITORY = "repository"
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
_LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the functions, the tutorials, and whatever pages link to outside of docs/."""
    for name, text in pages(ROOT).items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    for script in sorted(TUTORIALS.glob("*.py")):
        if script.stem not in _SHARED:
            files.append(File.generated(config, f"tutorials/{script.stem}.md", content=_tutorial(script)))
    for picture in sorted(RUNS.glob("*.png")):
        files.append(File.generated(config, f"tutorials/{picture.name}", content=picture.read_bytes()))
    waiting = [(file.src_uri, Path(file.abs_src_path or "")) for file in files.documentation_pages() if file.abs_src_path]
    seen: set[Path] = set()
    while waiting:
        _, path = waiting.pop()
        if path.suffix != ".md":
            continue
        for target in _outside(path):
            if target not in seen:
                seen.add(target)
                files.append(File.generated(config, _uri(target), content=_content(target)))
                waiting.append((_uri(target), target))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files outside of docs/ lead to their pages."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": weight(uri)}
    if uri.startswith("api/"):
        markdown = with_members(markdown, _classes())
    if uri.startswith("tutorials/"):
        return markdown
    if uri == "reference/index.md":
        markdown = overview(ROOT, markdown)
    source = ROOT / _real(uri)

    def replace(match: "re.Match[str]") -> str:
        link = match.group(2)
        target = (source.parent / link).resolve()
        if "://" in link or not target.exists():
            return match.group(0)
        return match.group(1) + posixpath.relpath(_uri(target), posixpath.dirname(uri) or ".") + match.group(3)

    return _LINK.sub(replace, markdown)


@functools.cache
def _classes() -> dict[str, type]:
    return entries(ROOT / "docs" / "api")


def _uri(path: Path) -> str:
    """Return the path that the site gives to a file of the repository."""
    inside = path.relative_to(ROOT)
    if inside.parts[0] == "docs":
        return inside.relative_to("docs").as_posix()
    if path.parent == TUTORIALS and path.stem not in _SHARED:
        return f"tutorials/{path.stem}.md"
    name = inside.as_posix()
    return f"{REPOSITORY}/{name}" if path.suffix == ".md" else f"{REPOSITORY}/{name}.md"


def _real(uri: str) -> str:
    return uri.removeprefix(f"{REPOSITORY}/") if uri.startswith(f"{REPOSITORY}/") else f"docs/{uri}"


def _outside(path: Path) -> list[Path]:
    """Return the files outside of docs/ that a page links to."""
    links = (match.group(2) for match in _LINK.finditer(path.read_text(encoding="utf-8")))
    targets = ((path.parent / link).resolve() for link in links if "://" not in link)
    return [
        target
        for target in targets
        if target.exists() and ROOT in target.parents and not _uri(target).startswith("tutorials/")
        if target.relative_to(ROOT).parts[0] != "docs"
    ]


def _content(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        listed = "\n".join(f"- `{entry.name}`" for entry in sorted(path.iterdir()) if entry.name[0] not in "._")
        return f"# {name}\n\n{listed}\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {name}\n\n```{_LANGUAGES.get(path.suffix, 'text')}\n{text}```\n"


def _tutorial(script: Path) -> str:
    """Return a page from the docstring of a script, its code, and what it printed and drew."""
    text = script.read_text(encoding="utf-8")
    _, docstring, code = text.split('"""', 2)
    title, _, rest = docstring.partition("\n")
    paragraphs = [_as_block(part) for part in rest.strip("\n").split("\n\n") if part.strip()]
    parts = [f"# {_title(script.stem)}", title, *paragraphs]
    output = RUNS / f"{script.stem}.txt"
    pictures = sorted(RUNS.glob(f"{script.stem}-*.png"))
    parts += [f"![{picture.stem.partition('-')[2].replace('_', ' ')}]({picture.name})" for picture in pictures]
    if output.exists():
        parts.append(f"It prints\n\n```text\n{output.read_text(encoding='utf-8').strip()}\n```")
    parts.append(f"## {script.name}\n\n```python\n{code.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _title(stem: str) -> str:
    words = [word.upper() if word in ("api", "rnn") else word for word in stem.replace("python", "Python").split("_")]
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])


def _as_block(paragraph: str) -> str:
    is_command = all(line.startswith("    ") for line in paragraph.splitlines())
    return f"```text\n{re.sub('(?m)^    ', '', paragraph)}\n```" if is_command else paragraph


def on_config(config: MkDocsConfig) -> Any:
    """List the tutorials in the navigation after the page that introduces them."""
    names = sorted(script.stem for script in TUTORIALS.glob("*.py") if script.stem not in _SHARED)
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Tutorials" in entry:
            entry["Tutorials"] += [f"tutorials/{name}.md" for name in names]
    return config
