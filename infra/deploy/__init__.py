"""What deploys Hayfork to AWS: not part of what runs there."""
