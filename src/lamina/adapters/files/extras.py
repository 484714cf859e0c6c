"""Maps optional features to the packages they require and the extras that install these.

Law: only this table contains the distribution's name, a feature's imports and the extra that
installs them; every install hint is written here. Checking imports nothing.

Private: see `lamina` for what is public.
"""

from importlib.util import find_spec
from typing import Literal

from msgspec import Struct

from lamina.errors import ExtraMissing

DISTRIBUTION = "lamina-context"

# Requirements of commands and calls. Requirements of targets are named after their wires.
Need = Literal[
    "llamacpp", "llamacpp_tools", "openai", "anthropic", "gemini",
    "line_editor", "search", "embeddings", "pdf", "pictures", "pages", "mcp", "web", "keyring",
    "emulator",
]  # fmt: skip


class Requirement(Struct, frozen=True):
    """A requirement: its name in a sentence, the modules it imports, and the extra that installs
    them."""

    noun: str
    modules: tuple[str, ...]
    extra: str


# In the same order as the README's table.
REQUIREMENTS: dict[Need, Requirement] = {
    "llamacpp": Requirement("the embedded model", ("xllamacpp", "httpx2"), "chat"),
    "llamacpp_tools": Requirement("the embedded model", ("xllamacpp", "httpx2"), "chat"),
    "line_editor": Requirement("typing at a terminal", ("prompt_toolkit",), "chat"),
    "openai": Requirement("OpenAI's wire", ("openai", "httpx2"), "openai"),
    "anthropic": Requirement("Anthropic's wire", ("anthropic", "httpx2"), "anthropic"),
    "gemini": Requirement("Gemini's wire", ("google.genai", "httpx2"), "gemini"),
    "search": Requirement("search", ("numpy", "Stemmer"), "search"),
    "embeddings": Requirement(
        "search by meaning", ("onnxruntime", "onnx", "tokenizers", "numpy"), "search"
    ),
    "pdf": Requirement("reading PDFs", ("pypdfium2",), "notes"),
    "pictures": Requirement("converting pictures", ("PIL",), "notes"),
    "pages": Requirement(
        "reading pages of the web", ("httpcore2", "lxml", "trafilatura", "webencodings"), "pages"
    ),
    "mcp": Requirement("talking to MCP servers", ("mcp",), "mcp"),
    "web": Requirement("the web app", ("starlette", "uvicorn"), "web"),
    "emulator": Requirement("emulating vendors", ("starlette", "uvicorn"), "emulate"),
    "keyring": Requirement("the system's keyring", ("keyring",), "keyring"),
}


def install_hint(*needs: Need) -> str:
    """Return the command that installs these requirements."""
    extras = dict.fromkeys(REQUIREMENTS[need].extra for need in needs)
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def missing_modules(need: Need) -> tuple[str, ...]:
    """Return the modules that are not installed."""
    return tuple(name for name in REQUIREMENTS[need].modules if not _is_there(name))


def is_installed(need: Need) -> bool:
    return not missing_modules(need)


def require(*needs: Need) -> None:
    """Raise an error if required packages are not installed.

    Raises:
        ExtraMissing: packages are missing; the message says how to install them.
    """
    if missing := [need for need in dict.fromkeys(needs) if not is_installed(need)]:
        *others, last = [REQUIREMENTS[need].noun for need in missing]
        nouns = f"{', '.join(others)} and {last}" if others else last
        verb = "needs" if len(missing) == 1 else "need"
        raise ExtraMissing(
            f"{nouns} {verb} packages that are not installed: {install_hint(*missing)}"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package
        return False
