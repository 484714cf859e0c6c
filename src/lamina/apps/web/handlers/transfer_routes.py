"""Sessions imported and exported as files, and a session's pictures."""

import base64
import binascii
import re

from lamina.apps.views.session_transfer import export_data
from lamina.apps.web.http_answers import Refusal, not_found
from lamina.apps.web.http_bodies import SentFile
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.session_records import ExportQuery, ImportedRow, NewImport
from lamina.apps.wiring.session_importer import import_data
from lamina.errors import JournalError

WORKSPACE = "/api/workspaces/{workspace}"
SESSION = f"{WORKSPACE}/sessions/{{session}}"
_MEDIA = {
    "markdown": "text/markdown", "jsonl": "application/jsonl", "json": "application/json",
    "requests": "application/jsonl",
}  # fmt: skip
# Pictures that a browser may show, by their first bytes; other blobs are not served as pictures.
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
)  # fmt: skip
_DIGEST = re.compile(r"[0-9a-f]{64}")


async def import_file(call: Call) -> ImportedRow:
    body: NewImport = call.body
    folder = call.desk.workspace(call.workspace)
    report = await import_data(
        read_content(body.content, body.encoding), name=body.name, workspace=folder
    )
    return ImportedRow(
        session=report.session,
        source=report.source,
        entries=report.entries,
        problems=tuple(
            f"line {problem.line}: {problem.detail}" if problem.line else problem.detail
            for problem in report.problems
        ),
        laid=report.laid,
    )


def read_content(content: str, encoding: str) -> bytes:
    """Return the bytes of a file sent as text or in base64.

    Raises:
        Refusal: it is not valid base64.
    """
    if encoding == "text":
        return content.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal(
            422, "invalid", f"the content is not base64: {error}", ("content",)
        ) from error


async def export_session(call: Call) -> SentFile:
    query: ExportQuery = call.query
    stored = call.desk.stored(call.workspace, call.session)
    name, data = await export_data(stored, query.form)
    return SentFile(data=data, media_type=_MEDIA[query.form], name=name)


async def show_blob(call: Call) -> SentFile:
    digest = call.path["digest"]
    await call.desk.require_session(call.workspace, call.session)
    if not _DIGEST.fullmatch(digest):
        raise not_found("picture", digest)
    try:
        data = await call.desk.stored(call.workspace, call.session).store.get_blob(digest)
    except JournalError as error:
        raise not_found("picture", digest) from error
    media_type = picture_type(data)
    if media_type is None:
        raise not_found("picture", digest)
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    return SentFile(data=data, media_type=media_type, inline=True, headers=headers)


def picture_type(data: bytes) -> str | None:
    """Return the type of a picture; None if a browser may not show it."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES if data.startswith(start)), None)


ROUTES = (
    Route(
        method="POST", path=f"{WORKSPACE}/import", handler=import_file, body=NewImport,
        result=ImportedRow, right="chat", status=201,
        summary="Imports another program's file as a session.",
    ),
    Route(
        method="GET", path=f"{SESSION}/export", handler=export_session, query=ExportQuery,
        result=bytes, form="file", summary="Exports the session as a file.",
    ),
    Route(
        method="GET", path=f"{SESSION}/blobs/{{digest}}", handler=show_blob, result=bytes,
        form="file", summary="Returns a picture of the session.",
    ),
)  # fmt: skip
