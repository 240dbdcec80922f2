"""What does a background process cost a job? It is stopped and continued in randomised quads of short blocks."""
