"""The APIs: LibreTranslate's, ModernMT's and our own. Routes parse and render, nothing else."""
