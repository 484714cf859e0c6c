"""The tables of the file behind the index, and how a file is known to be one."""

from lamina.adapters.files.cache_file import CacheFileKind

COLUMNS = "maker, digest, vector, terms, terms_version, checksum, day"
INDEX = CacheFileKind(
    name="index",
    with_article="an index",
    application=0x4C414D58,  # "LAMX"
    version=1,
    schema="""
CREATE TABLE IF NOT EXISTS makers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS chunks (
  maker INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, terms BLOB NOT NULL,
  terms_version INTEGER NOT NULL, checksum INTEGER NOT NULL, day INTEGER NOT NULL,
  UNIQUE (maker, digest)
);
CREATE TABLE IF NOT EXISTS sweeps (day INTEGER NOT NULL);
""",
    answers=(
        f"SELECT {COLUMNS} FROM chunks LIMIT 1",
        "SELECT id, name FROM makers LIMIT 1",
        "SELECT day FROM sweeps LIMIT 1",
    ),
    faults=("SELECT 1 FROM makers WHERE typeof(id) <> 'integer' LIMIT 1",),
    cache_kib=32_768,
)
