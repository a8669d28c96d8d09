"""KSTER as a service: the APIs of LibreTranslate, ModernMT and DeepL, its own, and a page for people.

Nothing is imported here, so that the command line can name settings without loading a model.
"""
