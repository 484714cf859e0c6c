"""What stands in a text and should not: characters that nobody sees, and secrets.

Law: looking changes nothing. A finding says what and where; `redact` alone gives another text.
"""

from lamina.text.screening_hidden import HiddenFinding, find_hidden, say_hidden
from lamina.text.screening_secrets import SecretFinding, find_secrets, redact, say_secrets

__all__ = [
    "HiddenFinding",
    "SecretFinding",
    "find_hidden",
    "find_secrets",
    "redact",
    "say_hidden",
    "say_secrets",
]
