/** Host names: the browser converts them to ASCII, and decides what is safe to show. */
export default { toASCII: (host: string): string => host, toUnicode: (host: string): string => host };
