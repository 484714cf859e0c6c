"""Clients that implement the `Provider` port with the vendors' own SDKs, imported on first use.

Every module here has `connect(target, key, *, retry_policy, timeout) -> Provider`."""
