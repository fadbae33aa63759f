"""The scan: every term looked for in every folded text by SQL. Complete, and the oracle of the index.

Only this module and `engine.snapshot` hold SQL. Must never know filters, sight or ranking: it answers where a
term occurs, nothing else.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.query.tree import Term
from engine.snapshot.format import FOLDED
from engine.text import fold, is_word_char

if TYPE_CHECKING:
    from engine.snapshot.open import Corpus

__all__ = ["inside_words", "scan"]

_NOT_WORD = r"[^\p{L}\p{M}\p{N}_]"
_WORD_CHAR = r"[\p{L}\p{M}\p{N}_]"


def scan(corpus: "Corpus", terms: Sequence[Term]) -> list[NDArray[np.int64]]:
    """For each term the sorted rows it occurs in. One statement per shard, whatever the number of terms.

    Raises:
        Unavailable: `too_slow`.
    """
    if not terms:
        return []
    params: list[object] = []
    columns = ", ".join(f"({_condition(term, params)}) AS t{i}" for i, term in enumerate(terms))
    anywhere = " OR ".join(f"t{i}" for i in range(len(terms)))
    parts: list[list[NDArray[np.int64]]] = [[] for _ in terms]
    for first_row, location in corpus.shard_files(FOLDED):
        found = corpus.database.arrays(
            f"SELECT * FROM (SELECT file_row_number AS row, {columns}"
            f" FROM read_parquet(${len(params) + 1}, file_row_number = true)) WHERE {anywhere} ORDER BY row",
            [*params, location],
        )
        rows = found["row"] + first_row
        for i, part in enumerate(parts):
            part.append(rows[found[f"t{i}"].astype(bool)])
    return [np.concatenate(part) for part in parts]


def inside_words(corpus: "Corpus", term: Term, rows: NDArray[np.int64]) -> dict[str, int]:
    """The words that a term without punctuation occurs in, and in how many of `rows` each; most first."""
    folded = fold(term.text)
    pattern = f"{_WORD_CHAR}*{re.escape(folded)}{_WORD_CHAR}*"
    text = {"topic": "folded_topic", "body": "folded_body"}.get(term.part, "folded_topic || chr(10) || folded_body")
    counts: dict[str, int] = {}
    for first_row, location in corpus.shard_files(FOLDED):
        found = corpus.database.rows(
            "SELECT word, count(*) FROM ("
            f"SELECT DISTINCT file_row_number, unnest(regexp_extract_all({text}, ?)) AS word"
            " FROM read_parquet(?, file_row_number = true) SEMI JOIN wanted ON file_row_number = wanted.row"
            ") GROUP BY word",
            [pattern, location],
            wanted={"row": rows - first_row},
        )
        for word, count in found:
            counts[word] = counts.get(word, 0) + count
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _condition(term: Term, params: list[object]) -> str:
    columns = [f"folded_{part}" for part in ("topic", "body") if term.part in ("any", part)]
    folded = fold(term.text)
    params.append(_whole_pattern(folded) if term.whole else folded)
    test = "regexp_matches" if term.whole else "contains"
    return " OR ".join(f"{test}({column}, ${len(params)})" for column in columns)


def _whole_pattern(folded: str) -> str:
    """RE2: the literal between edges of words; an end of it that is no word character needs no edge."""
    before = f"(?:^|{_NOT_WORD})" if is_word_char(folded[0]) else ""
    after = f"(?:$|{_NOT_WORD})" if is_word_char(folded[-1]) else ""
    return before + re.escape(folded) + after
