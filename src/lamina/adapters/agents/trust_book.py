"""Which folders a person trusts, and as what.

Law: trust is in something as it is. What differs from what was trusted is not trusted.
"""

from pathlib import Path

from msgspec import Struct

from lamina.adapters.files.shared_file import SharedFile
from lamina.core.values.trust import Claims, TrustRecord
from lamina.errors import UsageError


class _TrustFile(Struct, kw_only=True):
    version: int = 1
    # By real path.
    folders: dict[str, TrustRecord] = {}


class TrustBook:
    """The records in one file, which several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SharedFile(path, _TrustFile, "records of trust", "be asked about every folder")

    def find(self, place: str) -> TrustRecord | None:
        """What was trusted at a real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders.get(place)

    def records(self) -> dict[str, TrustRecord]:
        """All that is trusted, by real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders

    def record(self, claims: Claims, at: float) -> None:
        """Remembers that a person trusts this, in place of what they trusted there before.

        Raises:
            UsageError: it cannot be known as it is, or the file cannot be used.
        """
        if claims.problem:
            raise UsageError(f"{claims.place!r} cannot be trusted for good: {claims.problem}")
        with self._file.locked():
            book = self._file.read()
            book.folders[claims.place] = TrustRecord(
                digest=claims.digest, lines=claims.lines, at=at
            )
            self._file.write(book)

    def revoke(self, place: str) -> bool:
        """Forgets what was trusted at a real path; whether there was anything.

        Raises:
            UsageError: the file cannot be used.
        """
        with self._file.locked():
            book = self._file.read()
            if book.folders.pop(place, None) is None:
                return False
            self._file.write(book)
            return True
