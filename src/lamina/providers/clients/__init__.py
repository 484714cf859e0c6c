"""The vendors' own SDKs behind the port `Provider`, each imported when it is first wanted.

A module here has `connect(target, key, *, patience, timeout) -> Provider`."""
