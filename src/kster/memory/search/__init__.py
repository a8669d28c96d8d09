"""Search: all entries of a memory exactly, or the shortlist of each sentence."""
