"""Query language: text to Tree (parse), Tree with corpus and sight to BoundQuery (bind)."""
