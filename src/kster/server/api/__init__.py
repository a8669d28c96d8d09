"""The APIs: LibreTranslate's, ModernMT's, DeepL's and our own. Routes parse and render, nothing else."""
