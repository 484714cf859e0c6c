"""What happens inside, told to whoever asks for it: the lines of the `lamina` logger.

Law: they go to standard error; standard output holds what a command is for.
"""

import logging
import os
import sys

from lamina.errors import UsageError

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
FORM = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class StandardErrorHandler(logging.Handler):
    """Writes to whatever standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        # As handlers do: a log that cannot be written stops nobody.
        except Exception:  # noqa: BLE001
            self.handleError(record)


_HANDLER = StandardErrorHandler()
_HANDLER.setFormatter(logging.Formatter(FORM, "%H:%M:%S"))


def write_log(*, is_verbose: bool) -> None:
    """Writes the log from now on, if `is_verbose` or LAMINA_LOG says so; LAMINA_LOG says how much.

    Raises:
        UsageError: LAMINA_LOG is no level.
    """
    name = os.environ.get("LAMINA_LOG", "").strip().lower() or ("info" if is_verbose else "")
    logger = logging.getLogger("lamina")
    logger.removeHandler(_HANDLER)
    if not name:
        return
    if name not in LEVELS:
        raise UsageError(f"LAMINA_LOG is {' or '.join(LEVELS)}, not {name!r}")
    logger.setLevel(LEVELS[name])
    logger.addHandler(_HANDLER)


def is_log_written() -> bool:
    """Whether the person asked to be told more."""
    return _HANDLER in logging.getLogger("lamina").handlers
