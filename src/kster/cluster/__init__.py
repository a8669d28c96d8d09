"""More than one machine: memories on shards, the server as replicas, both run by Ray.

Nothing here is imported unless it is asked for (`kster serve --ray`, `kster cluster …`, `kster.cluster.…`).
"""
