"""Any program's requests, examined afterwards: where a cache did not hit, why, and what it cost.

`requests/` reads requests from files, and `collector` combines many files. `findings`, `causes`,
`readings` and `prompt_comparison` judge values: they do not depend on files or vendors' wires.

Private: see `lamina` for what is public.
"""
