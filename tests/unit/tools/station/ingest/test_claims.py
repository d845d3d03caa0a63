"""Several stations share one PostgreSQL store: each agent is heard by one, and by another when that one ends."""

import postgres_server
from agent_doubles import AgentDouble
from hearing import Hearing, hearing, until

from stillwatch.tools.station.settings import AgentSection, StationSettings
from stillwatch.tools.station.store import Claims, open_store


def test_a_claim_is_one_process_until_it_lets_go(postgres):
    address = postgres_server.new_database(postgres)
    first, second = (open_store(address)[0] for _ in range(2))
    one, other = Claims(first), Claims(second)
    assert (one.hold("cam1"), other.hold("cam1"), other.hold("cam2")) == (True, False, True)
    one.release("cam1")
    assert other.hold("cam1")
    other.close()
    assert until(lambda: one.hold("cam1"))  # the server notices in its own time
    assert until(lambda: one.hold("cam2"))
    one.close()
    first.close()
    second.close()


def test_two_stations_of_one_store_hear_an_agent_once_and_the_other_goes_on(postgres, tmp_path):
    address = postgres_server.new_database(postgres)
    agent = AgentDouble("cam1", f"ipc://{tmp_path}/cam1").serve()
    first = Hearing(address, StationSettings(agents={"cam1": AgentSection(endpoint=agent.endpoint)}))
    try:
        until(lambda: agent.status() and (first.store.agent("cam1") or {}).get("link") == "live")
        with hearing(address, agent) as second:
            agent.alert(1)
            until(first.alerts)
            assert second.ingest.live.messages == 0
            first.close()
            until(lambda: agent.status() and second.ingest.live.messages > 0)
            agent.alert(2)
            until(lambda: len(second.alerts()) == 2)
    finally:
        first.close()
        agent.close()


def test_what_one_station_is_told_in_its_page_the_others_hear_and_drop_too(postgres, tmp_path, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.ingest.ingest.FOLLOW_S", 0.05)
    address = postgres_server.new_database(postgres)
    agent = AgentDouble("cam1", f"ipc://{tmp_path}/cam1").serve()
    with hearing(address) as first, hearing(address) as second:
        first.ingest.add_agent(agent.endpoint, "")
        until(lambda: agent.endpoint in second.ingest.told())
        until(lambda: agent.status() and (second.store.agent("cam1") or {}).get("link") == "live")
        until(lambda: second.ingest.told()[agent.endpoint].agent == "cam1")
        second.ingest.remove_agent("cam1")
        until(lambda: agent.endpoint not in first.ingest.told())
        until(lambda: first.store.agent("cam1") is None)
    agent.close()


def test_a_server_that_lost_the_connection_lost_the_claim(postgres):
    address = postgres_server.new_database(postgres)
    store, _ = open_store(address)
    claims = Claims(store)
    assert claims.hold("cam1")
    with store.writing() as connection:
        ours = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = " \
               "(SELECT oid FROM pg_database WHERE datname = current_database())"  # fmt: skip
        connection.exec_driver_sql(ours)
    assert not claims.check()
    assert claims.hold("cam1")
    claims.close()
    store.close()
