"""What stands in a text and should not: characters that nobody sees, and secrets.

Law: looking changes nothing. A finding says what and where; `redact` alone gives another text.
"""

from lamina.text.hidden_characters import HiddenFinding, describe_hidden, find_hidden
from lamina.text.secrets import SecretFinding, describe_secrets, find_secrets, redact

__all__ = [
    "HiddenFinding",
    "SecretFinding",
    "find_hidden",
    "find_secrets",
    "redact",
    "describe_hidden",
    "describe_secrets",
]
