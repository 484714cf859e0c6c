/** Named characters of Markdown (`&mdash;`) that people and models write. All numeric ones are supported; other
 * names stay as typed. */

const NAMES: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", deg: "°",
  plusmn: "±", times: "×", divide: "÷", frac12: "½", frac14: "¼", frac34: "¾", sup2: "²", sup3: "³", micro: "µ",
  para: "¶", sect: "§", middot: "·", bull: "•", hellip: "…", ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’",
  ldquo: "“", rdquo: "”", sbquo: "‚", bdquo: "„", laquo: "«", raquo: "»", lsaquo: "‹", rsaquo: "›", larr: "←",
  rarr: "→", uarr: "↑", darr: "↓", harr: "↔", rArr: "⇒", lArr: "⇐", hArr: "⇔", euro: "€", pound: "£", yen: "¥",
  cent: "¢", infin: "∞", ne: "≠", le: "≤", ge: "≥", asymp: "≈", equiv: "≡", minus: "−", radic: "√", sum: "∑",
  prod: "∏", int: "∫", part: "∂", nabla: "∇", isin: "∈", notin: "∉", cap: "∩", cup: "∪", sub: "⊂", sup: "⊃",
  empty: "∅", forall: "∀", exist: "∃", and: "∧", or: "∨", not: "¬", alpha: "α", beta: "β", gamma: "γ", delta: "δ",
  epsilon: "ε", theta: "θ", lambda: "λ", mu: "μ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", omega: "ω",
  Delta: "Δ", Sigma: "Σ", Omega: "Ω", auml: "ä", ouml: "ö", uuml: "ü", Auml: "Ä", Ouml: "Ö", Uuml: "Ü", szlig: "ß",
  agrave: "à", aacute: "á", acirc: "â", atilde: "ã", aring: "å", aelig: "æ", ccedil: "ç", egrave: "è", eacute: "é",
  ecirc: "ê", euml: "ë", igrave: "ì", iacute: "í", icirc: "î", iuml: "ï", ntilde: "ñ", ograve: "ò", oacute: "ó",
  ocirc: "ô", otilde: "õ", oslash: "ø", ugrave: "ù", uacute: "ú", ucirc: "û", yacute: "ý", shy: "\u00ad",
  ensp: "\u2002", emsp: "\u2003", thinsp: "\u2009", zwnj: "\u200c", zwj: "\u200d", check: "✓", cross: "✗", star: "☆",
}; // prettier-ignore

export function decodeHTMLStrict(text: string): string {
  const name = /^&(\w+);$/.exec(text)?.[1];
  return name !== undefined && Object.hasOwn(NAMES, name) ? (NAMES[name] ?? text) : text;
}
