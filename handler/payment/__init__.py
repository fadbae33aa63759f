"""Pay per call without an account: what is asked for, who checks it, and that one payment buys one answer."""
