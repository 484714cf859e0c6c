"""Anybody's requests, looked at afterwards: where a cache did not hit, why, and what that cost.

Pure: records come in as values, and nothing here knows a file or a vendor's wire.
"""
