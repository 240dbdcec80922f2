"""The parts of the soak: a tree of agents, roots that are killed, a Dask cluster; and what they leave behind."""
