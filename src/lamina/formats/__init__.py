"""Sessions of other systems as entries of ours."""

from lamina.formats.detect import import_session
from lamina.formats.imported import Imported, Problem

__all__ = ["Imported", "Problem", "import_session"]
