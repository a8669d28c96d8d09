"""The page for people: its files, and the routes that serve them."""
