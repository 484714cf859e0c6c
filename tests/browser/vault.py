"""A small folder of notes with an agent in it, written for the tests of the web app."""

from pathlib import Path

APPROACH = """---
tags: [harbour]
---
# Approach

Ships come in two hours after low water, when the channel is deep enough.

## Lights

A green light on the north pier means that the channel is free.
"""
BERTHS = """# Berths

There are twelve berths. Berth 7 is for visitors. See [[approach]] and [[nowhere]].
"""
SAFETY = "# Safety\n\nWear a life jacket on deck. Radio channel 16 is always open. #harbour\n"
RULES = {
    "style": ("always", "How answers sound", 1, "Answer in one sentence."),
    "tides": ("agent", "Tides, high water and low water", 20, "Say when the water is high."),
    "billing": (
        "agent",
        "Invoices, bills and who pays them",
        900,
        "Harbour dues are paid at noon.",
    ),
    "tone": ("manual", "Tone of voice", 2, "Be warm."),
}
REFERENCES = {
    "tide-table": ("agent", "Tables of tides by day", 10, "Low water at noon, high water at six."),
    "harbour-map": ("always", "The map of the harbour", 5, "The north pier is at the top."),
}
PERSONA = "You are the pilot of a small harbour.\n"
AGENT = ".lamina/agents/pilot"


def write_vault(folder: Path) -> Path:
    """Writes the notes and the agent `pilot`."""
    files = {
        "approach.md": APPROACH,
        "berths.md": BERTHS,
        "log/safety.md": SAFETY,
        "log/2026-03.md": "# March\n\nThe pier was painted. #draft\n",
        f"{AGENT}/agent.yaml": "name: pilot\n",
        f"{AGENT}/persona.md": PERSONA,
    }
    for place, guides in (("rules", RULES), ("references", REFERENCES)):
        for name, (include, about, level, text) in guides.items():
            head = f"include: {include}\ndescription: {about}\npriority: {level}"
            files[f"{AGENT}/{place}/{name}.md"] = f"---\nname: {name}\n{head}\n---\n{text}\n"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder
