"""The files of the web app, as built into the package.

Laws: only files listed by the build are served; browsers keep files with a digest in their names
permanently, but never the page itself.
"""

import mimetypes
from pathlib import Path

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

FOLDER = Path(__file__).parent / "static"
NOT_BUILT = "The web app is not built: run `make web` in a checkout, or install a released wheel.\n"
# Where the build puts files whose names contain their digest.
_HASHED = "assets/"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
          ".woff2": "font/woff2", ".webmanifest": "application/manifest+json"}  # fmt: skip


class StaticFiles:
    """The files in a folder, listed once so that no path reaches beyond it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    @property
    def is_built(self) -> bool:
        return "index.html" in self._files

    async def answer(self, request: Request) -> Response:
        name = request.path_params["path"] or "index.html"
        path = self._files.get(name)
        if not self.is_built:
            return PlainTextResponse(NOT_BUILT, 503)
        if path is None or name.endswith(".gz"):
            return PlainTextResponse(f"Nothing found at /{name}.\n", 404)
        headers = {"vary": "accept-encoding"}
        is_hashed = name.startswith(_HASHED)
        headers["cache-control"] = (
            "public, max-age=31536000, immutable" if is_hashed else "no-cache"
        )
        packed = self._files.get(f"{name}.gz")
        if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            path, headers["content-encoding"] = packed, "gzip"
        return Response(
            await anyio.Path(path).read_bytes(), media_type=_type(name), headers=headers
        )


def _type(name: str) -> str:
    suffix = Path(name).suffix
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
