/** Character classes, which every browser supports natively. */
export const P = /\p{P}/u;
export const S = /\p{S}/u;
export const Z = /\p{Z}/u;
export const Cc = /\p{Cc}/u;
export const Cf = /\p{Cf}/u;
export const Any = /[\s\S]/u;
