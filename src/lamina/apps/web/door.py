"""Who may come in: a browser that was opened with a token, and comes back with a cookie.

Laws: a token works once, and a cookie is known by its digest alone. Both come from the system's
random source; nothing of them is written to a log. Cookies outlive the server, so that a tab that
stands open goes on after a restart.
"""

import hashlib
import hmac
import secrets
import time

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.shared_file import SharedFile
from lamina.apps.wiring.folders import data_folder

LOGIN_S = 30 * 86_400
_MOST_LOGINS = 200


class WebLogin(Struct, frozen=True, kw_only=True):
    """A browser that was let in: the digest of its cookie, and when."""

    digest: str
    at: float


class WebLogins(Struct, kw_only=True):
    """The file of browsers that were let in."""

    version: int = 1
    logins: tuple[WebLogin, ...] = ()


class Door:
    """Which names this server is reached by, and who was let in."""

    def __init__(self, port: int) -> None:
        self.port = port
        # One person may run several servers; browsers tell cookies apart by host alone.
        self.cookie = f"lamina_{port}"
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self._tokens: set[str] = set()
        self._file = SharedFile(
            data_folder() / "web-logins.json", WebLogins, "logins of the web app", "log in again"
        )
        self._logins: frozenset[str] | None = None

    def issue_token(self) -> str:
        """A token that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(_digest(token))
        return token

    def exchange(self, token: str) -> str | None:
        """The cookie for a token; None if it is none, or was used."""
        digest = _digest(token)
        known = next((known for known in self._tokens if hmac.compare_digest(known, digest)), None)
        if known is None:
            return None
        self._tokens.discard(known)
        cookie = secrets.token_urlsafe(32)
        now = time.time()
        with self._file.locked():
            content = self._file.read()
            fresh = [login for login in content.logins if now - login.at < LOGIN_S]
            logins = (*fresh[-_MOST_LOGINS:], WebLogin(digest=_digest(cookie), at=now))
            self._file.write(replace(content, logins=logins))
        self._logins = None
        return cookie

    def admits(self, cookie: str) -> bool:
        """Whether a cookie is one that was given out, and is not too old."""
        if self._logins is None:
            now = time.time()
            logins = self._file.read().logins
            self._logins = frozenset(login.digest for login in logins if now - login.at < LOGIN_S)
        return bool(cookie) and _digest(cookie) in self._logins


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
