"""The vendors' own SDKs behind the port `Provider`, imported when first wanted.

A module here has `connect(target, key, *, retry_policy, timeout) -> Provider`."""
