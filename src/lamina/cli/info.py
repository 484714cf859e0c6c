"""`lamina info`: what is installed, and where everything is.

Law: a path is never folded, so that it can be copied.
"""

from collections.abc import Iterator

from lamina.cli.terminal_text import format_bytes, visible
from lamina.faces.installation import Installation


def render_info(info: Installation) -> str:
    return visible("\n".join(_lines(info)))


def _lines(info: Installation) -> Iterator[str]:
    yield f"lamina {info.lamina}, Python {info.python}, {info.platform}"
    yield f"installed in {info.environment}"
    yield ""
    width = max(len(place.what) for place in info.places)
    for place in info.places:
        size = "-" if place.bytes is None else format_bytes(place.bytes)
        yield f"{place.what:<{width}}  {size:>9}  {place.path}"
    yield ""
    yield f"{info.sessions:,} sessions in {info.workspaces:,} workspaces, store: {info.store}"
    yield from (f"! not counted: {problem}" for problem in info.problems)
    yield f"default target: {info.target}"
    yield f"keys in the environment: {', '.join(info.keys) or 'none'}"
    yield ""
    width = max(len(extra.extra) for extra in info.extras)
    for extra in info.extras:
        state = f"missing ({', '.join(extra.missing)}): {extra.hint}" if extra.missing else "here"
        yield f"{extra.extra:<{width}}  {', '.join(extra.uses)}: {state}"
    if info.packages:
        versions = (f"{name} {number}" for name, number in info.packages.items())
        yield f"\npackages: {', '.join(versions)}"
