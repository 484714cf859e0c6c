"""Defects of our own: standard error has what is needed to mend them."""

import sys
import traceback


def tell_defect(error: Exception) -> None:
    traceback.print_exception(error, file=sys.stderr)
