"""Where messages come from: each module turns one outside form into SourceMessage values."""
