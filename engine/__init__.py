"""The core: what a message, a query and an answer are. It knows no cloud, no protocol, no environment, no clock."""
