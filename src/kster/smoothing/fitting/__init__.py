"""Learning a smoother: text looked up once, then fitted or tuned on what was found."""
