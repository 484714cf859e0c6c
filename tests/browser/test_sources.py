"""What the sources of the app keep to, and how large it is when it is built."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "src" / "lamina" / "apps" / "web" / "static"
SCRIPT_LIMIT, PACKED_LIMIT = 600_000, 200_000

# Not `style={...}`, `style="width: {x}%"` or `style:width={x}`: those are set from a script.
STATIC_STYLE = re.compile(r"""\sstyle=("[^"{]*"|'[^'{]*')""")
FETCHING = re.compile(r"(?<![#.\w])(fetch|EventSource|XMLHttpRequest|sendBeacon|WebSocket)\s*\(")
# The one module that talks to the server, and its streams.
FETCHERS = {"lib/api.ts", "lib/sse.ts"}


def sources(*endings: str) -> dict[str, str]:
    """The app's own sources by their path, without its tests."""
    return {
        path.relative_to(WEB / "src").as_posix(): path.read_text("utf-8")
        for path in sorted((WEB / "src").rglob("*"))
        if path.name.endswith(endings) and ".test." not in path.name
    }


def test_no_markup_has_a_style_of_its_own() -> None:
    found = [
        f"{path}: {match[0].strip()}"
        for path, text in sources(".svelte", ".html").items()
        for match in STATIC_STYLE.finditer(text)
    ]
    assert not found
    assert "style=" not in (WEB / "index.html").read_text("utf-8")


def test_html_is_put_in_place_in_one_file_only() -> None:
    assert [path for path, text in sources(".svelte").items() if "{@html" in text] == [
        "ui/Markdown.svelte"
    ]
    risky = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    for path, text in sources(".svelte", ".ts").items():
        assert not [word for word in risky if word in text], path


def test_one_module_talks_to_the_server() -> None:
    found = {path for path, text in sources(".svelte", ".ts").items() if FETCHING.search(text)}
    assert found <= FETCHERS


def test_the_lock_names_no_host_and_holds_every_platform() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text("utf-8"))
    packages = lock["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    bindings = [name for name in packages if "/@rolldown/binding-" in name]
    assert len(bindings) >= 15
    pinned = json.loads((WEB / "package.json").read_text("utf-8"))
    versions = (pinned["dependencies"] | pinned["devDependencies"]).values()
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)


def test_the_types_of_the_api_are_those_of_the_server(tmp_path: Path) -> None:
    fresh = tmp_path / "schema.ts"
    command = [sys.executable, str(WEB / "node.py"), "schema", str(fresh)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    is_same = fresh.read_text("utf-8") == (WEB / "src" / "lib" / "schema.ts").read_text("utf-8")
    assert is_same, "the API changed: python web/node.py schema"


def test_the_app_is_small() -> None:
    scripts = [path.read_bytes() for path in sorted(STATIC.rglob("*.js"))]
    assert scripts
    size, packed = sum(map(len, scripts)), sum(len(gzip.compress(text)) for text in scripts)
    assert size < SCRIPT_LIMIT
    assert packed < PACKED_LIMIT


def test_every_file_that_packs_well_is_there_packed_too() -> None:
    files = [path for path in STATIC.rglob("*") if path.suffix in (".js", ".css")]
    assert files
    for path in files:
        packed = path.with_name(f"{path.name}.gz")
        assert gzip.decompress(packed.read_bytes()) == path.read_bytes()


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    page = (STATIC / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert not re.search(r"https?://", page)
