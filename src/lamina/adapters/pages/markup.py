"""The text of an HTML page.

Law: what a person would not see on the page is not read, as far as the page itself tells: hidden
text is where orders to a model hide. Blocking: run it in a thread.
"""

import re
from typing import Any

from msgspec import Struct

from lamina.adapters.pages.answers import fetch_failure
from lamina.adapters.pages.styles import HidingRules, declarations, hides, hiding_rules

# Never shown, or only as a substitute for something else.
_UNSEEN_TAGS = frozenset({
    "script", "style", "template", "noscript", "iframe", "object", "embed", "applet", "svg", "math",
    "canvas", "audio", "video", "datalist", "noframes", "noembed", "frameset", "param", "link",
    "head",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hr", "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary",
    "table", "td", "th", "tr", "ul",
})  # fmt: skip
# Styles of the whole page are often undone by a script once the page has loaded.
_NEVER_HIDDEN_TAGS = frozenset({"html", "body", "main", "article"})
# For texts shorter than this the page's own description says more.
_SHORT = 500
_MAX_ELEMENTS = 30_000
_MAX_DEPTH = 150
_MAX_TITLE = 300
_MAX_DESCRIPTION = 5_000
_DESCRIPTIONS = ("og:description", "description", "twitter:description")


class PageText(Struct, frozen=True, kw_only=True):
    text: str
    title: str = ""
    warnings: tuple[str, ...] = ()


def read_markup(text: str) -> PageText:
    """The main text of a page as Markdown, or all of its text if the main part cannot be told.

    Raises:
        FetchFailure: it has no text.
    """
    tree, is_cut = _parse(text)
    if tree is None:
        raise fetch_failure("unreadable", "no text was found on the page")
    title, description = _title(tree), _description(tree)
    warnings = _drop_unseen(tree)
    if _is_simple(tree):
        page_text = _main_text(tree) or _all_text(tree)
    else:
        page_text = _all_text(tree)
        warnings += ("it is too large to tell its main text, so that this is all of its text",)
    if len(page_text) < _SHORT and description and description not in page_text:
        page_text = f"{description}\n\n{page_text}".strip()
    if not page_text:
        why = "it is nested too deep" if is_cut else "a script may put it there"
        raise fetch_failure("unreadable", f"no text was found on the page; {why}")
    if is_cut:
        warnings += ("it is nested too deep to be read whole; its rest is missing",)
    return PageText(text=page_text, title=title, warnings=warnings)


def _parse(text: str) -> tuple[Any, bool]:
    """The tree of a page, and whether the parser gave up before its end."""
    from lxml import etree, html  # type: ignore[import-untyped]

    parser = html.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )
    try:
        tree = html.document_fromstring(text.replace("\0", "").encode(), parser=parser)
    except etree.LxmlError:
        return None, False
    return tree, bool(parser.error_log.filter_from_fatals())


def _title(tree: Any) -> str:
    title = tree.findtext(".//head/title") or tree.findtext(".//title") or ""
    return _one_line(title, _MAX_TITLE)


def _description(tree: Any) -> str:
    tags = {
        (meta.get("property") or meta.get("name") or "").lower(): meta.get("content") or ""
        for meta in tree.iter("meta")
    }
    description = next((tags[name] for name in _DESCRIPTIONS if tags.get(name, "").strip()), "")
    return _one_line(description, _MAX_DESCRIPTION)


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _drop_unseen(tree: Any) -> tuple[str, ...]:
    """Removes what is not shown, and reports how much text that was."""
    rules = hiding_rules(style.text or "" for style in tree.iter("style"))
    places, characters = 0, 0
    for element in list(tree.iter()):
        if element is tree or element.getparent() is None:
            continue
        if element.tag in _UNSEEN_TAGS:
            element.drop_tree()
        elif element.tag not in _NEVER_HIDDEN_TAGS and _is_hidden(element, rules):
            length = len("".join("".join(element.itertext()).split()))
            places, characters = places + bool(length), characters + length
            element.drop_tree()
        else:
            # What stays is visible, but the search for the main text would take
            # `overflow: hidden` for hiding.
            element.attrib.pop("style", None)
    if not places:
        return ()
    return (f"hidden text was left out: {characters:,} characters in {places:,} places",)


def _is_hidden(element: Any, rules: HidingRules) -> bool:
    attributes = element.attrib
    if "hidden" in attributes or (element.tag == "dialog" and "open" not in attributes):
        return True
    if element.tag == "input":
        return True
    style = attributes.get("style")
    own = declarations(style) if style else {}
    if own and hides(own):
        return True
    if "display" in own:
        return False
    classes = frozenset((attributes.get("class") or "").split())
    return rules.hide(element.tag, attributes.get("id") or "", classes)


def _is_simple(tree: Any) -> bool:
    """Whether the main text can be found within seconds: the time for that grows faster than the
    page."""
    from lxml import etree

    elements = depth = 0
    for event, _ in etree.iterwalk(tree, events=("start", "end")):
        depth += 1 if event == "start" else -1
        elements += event == "start"
        if elements > _MAX_ELEMENTS or depth > _MAX_DEPTH:
            return False
    return True


def _main_text(tree: Any) -> str:
    import trafilatura

    text = trafilatura.extract(
        tree,
        output_format="markdown",
        include_comments=False,
        include_tables=True,
        include_links=False,
        include_images=False,
        deduplicate=False,
        with_metadata=False,
    )
    return (text or "").strip()


def _all_text(tree: Any) -> str:
    from lxml import etree

    parts: list[str] = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if element.tag in _BLOCKS:
            parts.append("\n")
        if event == "start":
            parts.append(element.text or "")
        elif element is not tree:
            parts.append(element.tail or "")
    lines = (" ".join(line.split()) for line in re.split(r"\n", _join_flow(parts)))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _join_flow(parts: list[str]) -> str:
    """Line breaks in the source are spaces; only blocks break lines."""
    return "".join(part if part == "\n" else re.sub(r"\s+", " ", part) for part in parts)
