"""What an agent's folder brings that counts only once a person trusts it, for a page."""

from msgspec import Struct

from lamina.apps.wiring.trust import FolderTrust, Standing


class TrustPage(Struct, frozen=True, kw_only=True):
    """What a person is shown before they trust a folder: `lines` is all of it, `digest` what trust
    is given by, `changes` what differs from what they trusted before."""

    place: str
    standing: Standing
    counts: bool
    can_be_kept: bool
    digest: str
    servers: tuple[str, ...]
    hooks: tuple[str, ...]
    model: str
    settings: tuple[str, ...]
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    problem: str
    notice: str


def show_trust(folder: FolderTrust) -> TrustPage:
    """What a folder brings, and how it stands."""
    claims = folder.claims
    return TrustPage(
        place=claims.place,
        standing=folder.standing,
        counts=folder.counts,
        can_be_kept=folder.can_be_kept,
        digest=claims.digest,
        servers=tuple(claims.servers),
        hooks=claims.hooks,
        model=claims.model,
        settings=tuple(f"{name}: {value}" for name, value in claims.settings.items()),
        lines=claims.lines,
        changes=folder.changes(),
        problem=folder.problem or claims.problem,
        notice=folder.notice(),
    )
