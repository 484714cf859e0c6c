"""What a page's own styles hide.

Only what the page alone tells: attributes, and rules for plain classes, ids and tags in its
`<style>` elements. Pure; knows nothing of the tree.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

Declarations = Mapping[str, str]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SELECTOR = re.compile(r"([a-z][a-z0-9-]*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_PART = re.compile(r"([.#])([\w-]+)")
_LENGTH = re.compile(r"(-?[0-9]*\.?[0-9]+)(px|pt|em|rem|%|vw|vh)?")
# Text smaller than this cannot be read; in each unit.
_UNREADABLE = {"": 0.0, "px": 2.0, "pt": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0, "vw": 0.1}
# Farther to the left or above than this it is off any screen.
_OUTSIDE = {"px": -900.0, "pt": -700.0, "em": -50.0, "rem": -50.0, "%": -100.0, "vw": -100.0}
_NOTHING = frozenset({"0", "0px", "0%", "0em", "1px"})
# Styles beyond this length are ignored; such a page has little text of its own.
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
    """Rules that hide. Those with one part are looked up, so that no page can make this slow."""

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
    """The properties of a style attribute; if one is set twice, the last value counts, unless the
    first was important."""
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
    """Whether this style makes an element invisible."""
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
    """Those rules of style sheets that hide what they select."""
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
    """Selectors and bodies that always apply, unlike those inside @media and the like."""
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
