"""Published measurements and exercises as data, so that their claims are tests: tables 2, 3 and 4, and the homework."""
