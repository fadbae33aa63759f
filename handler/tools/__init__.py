"""The five tools as a table, and what is made of it: schemas, argument validation, options, documentation."""
