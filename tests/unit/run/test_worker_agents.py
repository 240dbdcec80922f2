"""What a worker of Dask does with the agents that it carries."""

import asyncio
from types import SimpleNamespace

from distributed.core import Status

from crosswind.run import worker_agents
from crosswind.run.worker_agents import Carrier


def test_a_request_that_comes_while_the_last_agent_is_taken_away_keeps_the_plugin(monkeypatch):
    """The plugin was removed with the agent that the request had started: one task in two was given up."""
    carrier, removed = Carrier("farm"), []
    carrier.starting = 1

    async def remove(name):
        removed.append(carrier.starting)

    worker = SimpleNamespace(plugins={carrier.name: carrier}, status=Status.running, plugin_remove=remove)
    taken_away = []

    def take_away():
        taken_away.append(None)
        if len(taken_away) == 1:
            carrier.starting = 1  # a request begins

    monkeypatch.setattr(worker_agents, "take_away_abandoned", take_away)
    monkeypatch.setattr(worker_agents, "_TEND_S", 0.001)

    async def tended():
        tending = asyncio.create_task(carrier._tend(worker))
        await asyncio.sleep(0)
        carrier.starting = 0
        while not taken_away or carrier.starting == 0:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert removed == []
        carrier.starting = 0
        await asyncio.wait_for(tending, 30)

    asyncio.run(tended())
    assert removed == [0]
