"""What a server does for its clients: models and memories kept open, batches, jobs."""
