"""Sessions of other systems as entries of ours.

Private: see `lamina` for what is public.
"""

from lamina.formats.detection import import_session
from lamina.formats.imported_session import ImportedSession, ImportProblem

__all__ = ["ImportedSession", "ImportProblem", "import_session"]
