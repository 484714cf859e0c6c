"""The one door into folders: roots, paths, and the places of files."""
