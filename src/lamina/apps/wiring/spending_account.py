"""Where the cost of requests is recorded on this machine, and the limits set in the environment.

Law: a limit in the environment applies to every session, whatever its own settings; the lower limit
counts.
"""

import os
from functools import cache
from pathlib import Path

from lamina.adapters.stores.spend_file import SpendFile
from lamina.apps.wiring.folders import data_folder
from lamina.core.ports import SpendLedger
from lamina.core.values.spend_limits import SpendLimits
from lamina.errors import InvalidSetting

ACCOUNT = "spend.jsonl"


def default_ledger() -> SpendLedger:
    """The person's ledger on this machine: one for all workspaces, next to their sessions."""
    return _ledger_at(data_folder() / ACCOUNT)


@cache
def _ledger_at(path: Path) -> SpendFile:
    # One for all sessions of a process, so that only new lines are read.
    return SpendFile(path)


def limits_of_environment() -> SpendLimits:
    """The limits of LAMINA_SPEND_TURN, LAMINA_SPEND_SESSION and LAMINA_SPEND_DAY, in US dollars.

    Raises:
        InvalidSetting: one of them is not an amount.
    """
    return SpendLimits(turn=_amount("TURN"), session=_amount("SESSION"), day=_amount("DAY"))


def _amount(scope: str) -> float | None:
    name = f"LAMINA_SPEND_{scope}"
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise InvalidSetting(name, text, "must be an amount in US dollars, such as 5 or 0.50")
    return amount
