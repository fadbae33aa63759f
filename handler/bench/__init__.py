"""The benchmark: this engine beside SQLite FTS5, tantivy and its own scan, over the same made-up messages.

Decides what is measured and how it is told. Systems that disagree on an answer are not compared. Must never be
imported by what serves: its peers are development packages.
"""
