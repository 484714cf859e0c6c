"""The log of what happens inside, on request: the lines of the `lamina` logger.

Law: log lines go to standard error; standard output is for a command's result.
"""

import logging
import os
import sys

from lamina.errors import UsageError

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
FORM = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class StandardErrorHandler(logging.Handler):
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        # As in other handlers, a log that cannot be written stops nothing.
        except Exception:  # noqa: BLE001
            self.handleError(record)


_HANDLER = StandardErrorHandler()
_HANDLER.setFormatter(logging.Formatter(FORM, "%H:%M:%S"))


def write_log(*, is_verbose: bool) -> None:
    """Start writing the log if `is_verbose` or LAMINA_LOG is set; LAMINA_LOG sets the level.

    Raises:
        UsageError: LAMINA_LOG is not a level.
    """
    name = os.environ.get("LAMINA_LOG", "").strip().lower() or ("info" if is_verbose else "")
    logger = logging.getLogger("lamina")
    logger.removeHandler(_HANDLER)
    if not name:
        return
    if name not in LEVELS:
        raise UsageError(f"LAMINA_LOG must be {' or '.join(LEVELS)}, not {name!r}")
    logger.setLevel(LEVELS[name])
    logger.addHandler(_HANDLER)


def is_log_written() -> bool:
    """Whether the person asked for a log."""
    return _HANDLER in logging.getLogger("lamina").handlers
