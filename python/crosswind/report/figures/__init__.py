"""The report's figures as Altair charts, one story per file: take them into a notebook."""
