"""The command line: the tools and what keeps a corpus, for a person at a terminal or a script.

Decides words, options and exit codes only. Must never know a store or how anything is found.
"""

from handler.cli.entry import main

__all__ = ["main"]
