"""Who may ask over HTTP, and what exists for them: proof of identity, policies, and the gate in front of the server."""
