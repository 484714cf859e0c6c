"""Sessions, turns and runners. All code here is async and reaches the outside world only through
`core.ports`.

Private: see `lamina` for what is public.
"""
