"""Where on this machine it is written down what requests cost, and the limits of its environment.

Law: what the environment says is a limit for every session, whatever its own settings say; the
lower one counts.
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
    """The account of the person on this machine: one for all workspaces, beside their sessions."""
    return _ledger_at(data_folder() / ACCOUNT)


@cache
def _ledger_at(path: Path) -> SpendFile:
    # One for all sessions of a process: each reads only what came since.
    return SpendFile(path)


def limits_of_environment() -> SpendLimits:
    """LAMINA_SPEND_TURN, LAMINA_SPEND_SESSION and LAMINA_SPEND_DAY, in US dollars.

    Raises:
        InvalidSetting: one of them is no amount.
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
        raise InvalidSetting(name, text, "has to be an amount in US dollars, such as 5 or 0.50")
    return amount
