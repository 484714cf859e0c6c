"""Two hundred strings that would run something, fetch something or take the page over, if a screen
put them in place as HTML, as an address or as a style."""

from urllib.parse import quote

# Whatever runs opens a dialog, marks the page or asks for an address with this word in it.
MARK = "hostile"
RUNS = (
    f"alert('{MARK}')",
    f"document.documentElement.dataset.{MARK}=1",
    f"fetch('/{MARK}')",
    f"new Image().src='/{MARK}'",
)

# `{run}` is a script, `{quoted}` the same in percent escapes.
_FORMS = (
    "<script>{run}</script>",
    "<ScRiPt>{run}</sCrIpT>",
    "<script src=/hostile.js></script>",
    "<script\n>{run}</script\n>",
    "</script><script>{run}</script>",
    "</textarea><script>{run}</script>",
    "</title><script>{run}</script>",
    "<img src=x onerror={run}>",
    '<img src="x" onerror="{run}">',
    "<img src=/hostile.png>",
    "<IMG SRC=javascript:{run}>",
    "<svg onload={run}>",
    "<svg><script>{run}</script></svg>",
    "<svg><animate onbegin={run} attributeName=x dur=1s>",
    "<svg><use href=data:image/svg+xml,{quoted}></use></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror={run}>",
    "<details open ontoggle={run}>",
    "<video><source onerror={run}></video>",
    "<audio src=x onerror={run}>",
    "<iframe src=javascript:{run}></iframe>",
    "<iframe srcdoc='<script>{run}</script>'></iframe>",
    "<object data=javascript:{run}></object>",
    "<embed src=javascript:{run}>",
    "<body onload={run}>",
    "<input autofocus onfocus={run}>",
    "<select autofocus onfocus={run}>",
    "<a href=javascript:{run}>x</a>",
    "<a href='java\tscript:{run}'>x</a>",
    "<form action=javascript:{run}><button>x</button></form>",
    "<base href=//hostile.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:{run}'>",
    "<link rel=stylesheet href=/hostile.css>",
    "<style>@import '/hostile.css'; * {{ background: url(/hostile.png) }}</style>",
    "<div style='background:url(/hostile.png)'>x</div>",
    "<marquee onstart={run}>",
    "<template><script>{run}</script></template>",
    "<noscript><p title='</noscript><img src=x onerror={run}>'>",
    "<xmp><p title='</xmp><img src=x onerror={run}>'>",
    "[x](javascript:{run})",
    "[x](JaVaScRiPt:{quoted})",
    "[x](data:text/html,<script>{run}</script>)",
    "[x](vbscript:{run})",
    "![x](http://hostile.example/x.png)",
    "![x](/hostile.png)",
    "![x](javascript:{run})",
    "[x]: javascript:{run}\n[x]",
    "<javascript:{run}>",
    "```html\n<script>{run}</script>\n```",
    "|a|\n|-|\n|<img src=x onerror={run}>|",
    "{{@html '<script>{run}</script>'}} {{{run}}} ${{{run}}}",
)


def _strings() -> list[str]:
    made = [
        form.format(run=run, quoted=quote(f"<svg onload={run}>")) for form in _FORMS for run in RUNS
    ]
    return list(dict.fromkeys(made))


_ALL = _strings()
# A few forms run nothing by themselves and come once; these fill the two hundred.
_MORE = [
    f"{start}<img src=x onerror={run}>{end}"
    for start, end in (
        ("\u202e", ""), ("\x00", ""), ("\ufeff", "\ufeff"), ("'\">", ""), ("`${", "}`"),
        ("<!--", "-->"), ("]]>", ""), ("&lt;", "&gt;"),
    )
    for run in RUNS
]  # fmt: skip
STRINGS: tuple[str, ...] = tuple(dict.fromkeys([*_ALL, *_MORE]))[:200]
assert len(STRINGS) == 200


def as_file_name(text: str) -> str:
    """As much of it as a file may be called."""
    kept = "".join("_" if letter in "/\0\n\t" else letter for letter in text)
    return kept.encode("utf-8")[:120].decode("utf-8", "ignore")
