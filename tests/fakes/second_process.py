"""Work for a second process: batches say what is to happen in it."""

import os
import signal
import sys


def name_process(batch: int) -> int:
    """The process that did it."""
    return os.getpid()


def act_up(batch: tuple[str, int]) -> list[str]:
    """What a batch says, unless that is something that must not happen in the caller's process."""
    deed, caller = batch
    is_here = os.getpid() == caller
    if not is_here and deed == "die":
        os._exit(3)
    if not is_here and deed == "raise":
        raise ValueError(deed)
    if not is_here and deed == "print":
        sys.stdout.write("noise" * 1000)
        sys.stdout.flush()
    if not is_here and deed == "babble":
        # To whoever sent the batch, in place of a result.
        os.write(0, b"\xff" * 1000)
    if not is_here and deed == "hang":
        signal.pause()
    return [deed, "here" if is_here else "there"]
