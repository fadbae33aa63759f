"""The index read: a lexicon in memory, its postings and positions on demand."""
