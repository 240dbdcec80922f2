"""Applications at both ends of a message filter, for tests and benchmarks."""
