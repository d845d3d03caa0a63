"""Many subscribers are waited for at once: whoever has something is told, however the sockets came and went."""

import pytest
from agent_doubles import AgentDouble

from stillwatch.base import RealClock
from stillwatch.transport.live import AnyOf, Received, SharedContext, Subscriber
from stillwatch.transport.live import many as many_module

N = 5
PATIENCE_MS = 20


class Many:
    """N agents, a subscriber of each, and what was taken of what came."""

    def __init__(self, folder):
        self.clock, self.context = RealClock(), SharedContext()
        self.agents = [AgentDouble(f"cam{i}", f"ipc://{folder}/cam{i}").serve() for i in range(N)]
        self.subscribers = [self.subscriber(agent) for agent in self.agents]
        self.any_of = AnyOf(self.clock)
        self.taken = {agent.agent: [] for agent in self.agents}

    def subscriber(self, agent):
        made = Subscriber(agent.endpoint, clock=self.clock, agent=agent.agent, silence_s=0.5)
        made.open(self.context)
        return made

    def step(self, most=1000):
        """Wait once and take at most so many of each who has something; return how many had."""
        ready = self.any_of.wait(self.subscribers, PATIENCE_MS)
        for subscriber in ready:
            for _ in range(most):
                if (got := subscriber.recv(0)) is None:
                    break
                if isinstance(got, Received) and got.kind == "alert":
                    self.taken[got.message.agent].append(got.message.id)
        return len(ready)

    def until(self, true, most=1000):
        for _ in range(3000):
            if true():
                return
            self.step(most)
        raise AssertionError(self.taken)

    def join(self):
        self.until(lambda: all(subscriber.is_complete for subscriber in self.subscribers))

    def close(self):
        self.any_of.close()
        for one in (*self.subscribers, *self.agents):
            one.close()
        self.context.close()


@pytest.fixture
def many(tmp_path, monkeypatch):
    monkeypatch.setattr(many_module, "LOOK_NS", 10**18)  # everybody is asked by signal, none by the look once a second
    made = Many(tmp_path)
    made.join()
    yield made
    made.close()


def test_what_each_says_is_taken_whoever_else_speaks(many):
    for number in range(20):
        for agent in many.agents[: 1 + number % N]:
            agent.alert(number)
        many.step()
    wanted = {f"cam{i}": [n for n in range(20) if i <= n % N] for i in range(N)}
    many.until(lambda: many.taken == wanted)


def test_what_was_left_lying_is_told_again_without_a_new_signal(many):
    for number in range(30):
        many.agents[0].alert(number)
    many.until(lambda: sorted(many.taken["cam0"]) == list(range(30)), most=1)  # a burst may come by the snapshot


def test_one_whose_sockets_were_made_anew_is_heard(many):
    before, endpoint = many.subscribers[1].sockets, many.agents[1].endpoint
    many.agents[1].close()
    many.until(lambda: many.subscribers[1].sockets != before)  # after some silence
    many.agents[1] = AgentDouble("cam1", endpoint, epoch=2).serve()
    many.agents[1].alert(7)
    many.until(lambda: many.taken["cam1"] == [7])


def test_one_that_was_closed_is_forgotten_and_its_successor_heard(many):
    gone = many.subscribers.pop(2)
    gone.close()
    many.step()
    many.subscribers.append(many.subscriber(many.agents[2]))
    many.join()
    many.agents[2].alert(3)
    many.agents[4].alert(4)
    many.until(lambda: (many.taken["cam2"], many.taken["cam4"]) == ([3], [4]))


def test_nobody_has_anything_where_nothing_came(many):
    for _ in range(5):
        many.step()
    assert many.any_of.wait(many.subscribers, 0) == []
