"""Several nodes in one process: how one of them ended is known, whatever it was."""

import pytest

from crosswind.run import agent


class Panic(BaseException):
    """As an exception for a panic in Rust: no `Exception`."""


def test_a_panic_of_one_node_is_raised_once_the_others_have_ended(monkeypatch):
    ended = []

    def be_agent(parent, name, token, **options):
        if name == "b":
            raise Panic("of b")
        ended.append(name)

    monkeypatch.setattr(agent, "be_agent", be_agent)
    with pytest.raises(Panic, match="of b"):
        agent.be_agents("127.0.0.1:1", ["a", "b", "c"], None)
    assert sorted(ended) == ["a", "c"]
