"""Text as people write it: sentences, inline codes, placeholders, languages. No models, no files."""
