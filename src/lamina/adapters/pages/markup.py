"""Extracts the text of an HTML page, without content that the page itself hides.

Law: text that a person would not see on the page is not read, as far as the page alone shows: by
its attributes and by rules for plain classes, ids and tags in its `<style>` elements. Hidden text
is a common place for instructions to a model. Blocking: run it in a thread.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lamina.adapters.pages.fetch_answers import fetch_failure

Declarations = Mapping[str, str]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SELECTOR = re.compile(r"([a-z][a-z0-9-]*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_PART = re.compile(r"([.#])([\w-]+)")
_LENGTH = re.compile(r"(-?[0-9]*\.?[0-9]+)(px|pt|em|rem|%|vw|vh)?")
# Text smaller than this is unreadable, per unit.
_UNREADABLE = {"": 0.0, "px": 2.0, "pt": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0, "vw": 0.1}
# Text farther to the left or top than this is off any screen.
_OUTSIDE = {"px": -900.0, "pt": -700.0, "em": -50.0, "rem": -50.0, "%": -100.0, "vw": -100.0}
_NOTHING = frozenset({"0", "0px", "0%", "0em", "1px"})
# Styles beyond this length are ignored; a page with that many has little text of its own.
_MAX_STYLE = 500_000
_MAX_COMPOUND = 50


class StyleRule(Struct, frozen=True, kw_only=True):
    """A selector: a tag, an id and classes, all of which have to match."""

    tag: str = ""
    id: str = ""
    classes: frozenset[str] = frozenset()

    @property
    def parts(self) -> int:
        return bool(self.tag) + bool(self.id) + len(self.classes)

    def selects(self, tag: str, id: str, classes: frozenset[str]) -> bool:
        return self.tag in ("", tag) and self.id in ("", id) and self.classes <= classes


class HidingRules(Struct, frozen=True, kw_only=True):
    """Rules that hide elements. One-part rules are indexed, so that no page can make this slow."""

    tags: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    compound: tuple[StyleRule, ...] = ()

    def hide(self, tag: str, id: str, classes: frozenset[str]) -> bool:
        return (
            tag in self.tags
            or id in self.ids
            or not self.classes.isdisjoint(classes)
            or any(rule.selects(tag, id, classes) for rule in self.compound)
        )


def declarations(style: str) -> dict[str, str]:
    """Return the properties in a style attribute; if one is set twice, the last value counts,
    unless the first was marked important."""
    properties: dict[str, str] = {}
    important = set()
    for part in style.split(";"):
        name, _, value = part.partition(":")
        key, text = name.strip().lower(), " ".join(value.lower().split())
        if key in important and "!important" not in text:
            continue
        if "!important" in text:
            important.add(key)
        properties[key] = text.replace("!important", "").strip()
    return properties


def hides(style: Declarations) -> bool:
    """Return whether this style makes an element invisible."""
    get = style.get
    return (
        get("display") == "none"
        or get("visibility") in ("hidden", "collapse")
        or get("content-visibility") == "hidden"
        or _is_nothing(get("opacity", ""))
        or get("color") == "transparent"
        or _is_same_colour(style)
        or _is_below(get("font-size", ""), _UNREADABLE)
        or any(_is_below(get(name, ""), _OUTSIDE) for name in ("left", "top", "text-indent"))
        or any(_is_below(get(name, ""), _OUTSIDE) for name in ("margin-left", "margin-top"))
        or _is_clipped(style)
        or "scale(0)" in get("transform", "")
    )


def hiding_rules(sheets: Iterator[str]) -> HidingRules:
    """Return the style sheet rules that hide elements."""
    styles: dict[StyleRule, dict[str, str]] = {}
    for sheet in sheets:
        for selectors, body in _blocks(_COMMENT.sub("", sheet[:_MAX_STYLE])):
            for selector in selectors.split(","):
                if (rule := _read_rule(selector.strip())) is not None:
                    styles.setdefault(rule, {}).update(declarations(body))
    hiding = [rule for rule, style in styles.items() if hides(style)]
    single = [rule for rule in hiding if rule.parts == 1]
    return HidingRules(
        tags=frozenset(rule.tag for rule in single if rule.tag),
        ids=frozenset(rule.id for rule in single if rule.id),
        classes=frozenset().union(*(rule.classes for rule in single)),
        compound=tuple(rule for rule in hiding if rule.parts > 1)[:_MAX_COMPOUND],
    )


def _blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield selectors and bodies that always apply, unlike those inside @media and the like."""
    start, depth, head, body = 0, 0, "", 0
    for mark in re.finditer(r"[{};]", sheet):
        match mark[0]:
            case "{":
                depth += 1
                if depth == 1:
                    head, body = sheet[start : mark.start()].strip(), mark.end()
            case "}":
                depth = max(0, depth - 1)
                if depth == 0:
                    if not head.startswith("@"):
                        yield head, sheet[body : mark.start()]
                    start = mark.end()
            case _ if depth == 0:
                start = mark.end()


def _read_rule(selector: str) -> StyleRule | None:
    match = _SELECTOR.fullmatch(selector)
    if match is None or not selector:
        return None
    parts: list[tuple[str, str]] = _PART.findall(match[2])
    ids = [name for mark, name in parts if mark == "#"]
    classes = frozenset(name for mark, name in parts if mark == ".")
    if len(ids) > 1:
        return None
    return StyleRule(tag=(match[1] or "").lower(), id=ids[0] if ids else "", classes=classes)


def _is_nothing(value: str) -> bool:
    length = _LENGTH.fullmatch(value)
    return length is not None and float(length[1]) <= (5.0 if length[2] == "%" else 0.05)


def _is_below(value: str, limits: Mapping[str, float]) -> bool:
    length = _LENGTH.fullmatch(value)
    if length is None or (length[2] or "") not in limits:
        return False
    limit = limits[length[2] or ""]
    return float(length[1]) <= limit if limit <= 0 else float(length[1]) < limit


def _is_same_colour(style: Declarations) -> bool:
    colour = style.get("color", "")
    behind = style.get("background-color") or style.get("background", "")
    return bool(colour) and _colour(colour) == _colour(behind)


def _colour(value: str) -> str:
    value = {"white": "#ffffff", "black": "#000000"}.get(value, value)
    if len(value) == 4 and value.startswith("#"):
        return "#" + "".join(digit * 2 for digit in value[1:])
    return value


def _is_clipped(style: Declarations) -> bool:
    clip = style.get("clip", "").replace(" ", "").replace(",", "")
    if clip in ("rect(0000)", "rect(0px0px0px0px)", "rect(1px1px1px1px)"):
        return True
    if style.get("clip-path", "") in ("inset(50%)", "inset(100%)", "circle(0)", "circle(0px)"):
        return True
    sizes = [style.get(name, "") for name in ("width", "height", "max-width", "max-height")]
    is_cropped = style.get("overflow", "") in ("hidden", "clip")
    return is_cropped and any(size in _NOTHING for size in sizes)


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
# For shorter texts the page's own description says more.
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
    """Read the main text of a page as Markdown, or all of its text if the main part is unclear.

    Raises:
        FetchFailure: the page has no text.
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
    """Return a page's tree, and whether the parser gave up before the end."""
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
    """Remove hidden content, and report the amount of text removed."""
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
            # The remaining elements are visible, but the main-text search would take `overflow:
            # hidden` for hidden content.
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
    """Return whether the main text can be found within seconds: the time needed grows faster than
    the page."""
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
    """Treat line breaks in the source as spaces; only blocks break lines."""
    return "".join(part if part == "\n" else re.sub(r"\s+", " ", part) for part in parts)
