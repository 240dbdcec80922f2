"""The page: one HTML file from sections, or a PDF of it."""
