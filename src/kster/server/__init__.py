"""KSTER as a service: LibreTranslate's API, ModernMT's, its own, and a page for people.

Nothing is imported here, so that the command line can name settings without loading a model.
"""
