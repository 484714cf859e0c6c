"""The pure core: a state and a question go in, entries and a prompt come out.

No I/O, no clock, no `await`; time, ids and files come in as values. A room imports only rooms
before it: values, codec, schemas, text, journal, layers, ledger, selection, notes, compaction,
ports, assembly, audit.

Private: see `lamina` for what is public.
"""
