/** Names of hosts: the browser itself writes them in ASCII, and shows what is safe to show. */
export default { toASCII: (host: string): string => host, toUnicode: (host: string): string => host };
