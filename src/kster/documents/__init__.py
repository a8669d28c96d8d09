"""Files to be translated: their text becomes units with inline codes and goes back into the same bytes."""
