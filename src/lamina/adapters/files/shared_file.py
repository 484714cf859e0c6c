"""Reads and writes a small JSON file of a person's decisions that several processes may share.

Law: the file is read and written completely or not at all; an unreadable file is never overwritten.

Private: see `lamina` for what is public.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from lamina.adapters.files.durable_writes import replace_file
from lamina.adapters.files.locks import lock_file
from lamina.errors import UsageError

_LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02


class _Versioned(Protocol):
    """The type of such a file's content: a record that is empty by default and states its
    version."""

    version: int


T = TypeVar("T", bound=_Versioned)


class SharedFile(Generic[T]):
    """The file at `path`, read as type `form`. `noun` names its content; `if_deleted` says what a
    person must redo if it is deleted."""

    def __init__(self, path: Path, form: type[T], noun: str, if_deleted: str) -> None:
        self.path = path
        self._form = form
        self._noun = noun
        self._if_deleted = if_deleted

    def read(self) -> T:
        """Return the content; an empty record if the file does not exist.

        Raises:
            UsageError: it cannot be read.
        """
        try:
            content = msgspec.json.decode(self.path.read_bytes(), type=self._form)
        except FileNotFoundError:
            return self._form()
        except OSError as error:
            raise UsageError(
                f"the {self._noun} in {str(self.path)!r} cannot be read: "
                f"{error.strerror or error}; make the file readable"
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(
                f"the {self._noun} in {str(self.path)!r} are damaged ({error}) and were not "
                f"changed; fix the file, or delete it to {self._if_deleted}"
            ) from error
        if content.version != (known := self._form().version):
            raise UsageError(
                f"the {self._noun} in {str(self.path)!r} are of version {content.version}, but "
                f"this Lamina reads version {known}; use the newer Lamina, or another file"
            )
        return content

    def write(self, content: T) -> None:
        """Write atomically: the new file replaces the old one once it is on disk.

        Raises:
            UsageError: it cannot be written.
        """
        data = msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=1) + b"\n"
        try:
            replace_file(self.path, data)
        except OSError as error:
            raise self._unwritable(error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Admit one process at a time; the lock ends with the handle, even if a process is killed.

        Raises:
            UsageError: another process has the lock, or the file cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._wait_for_lock(handle)
            yield
        finally:
            os.close(handle)

    def _wait_for_lock(self, handle: int) -> None:
        deadline = time.monotonic() + _LOCK_SECONDS
        try:
            while not lock_file(handle):
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"the {self._noun} in {str(self.path)!r} have been locked by another "
                        f"process for more than {_LOCK_SECONDS:g} s; end that process and try again"
                    )
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the {self._noun} in {str(self.path)!r} cannot be written: "
            f"{error.strerror or error}; free some space, or make the folder writable"
        )
