"""Compact messages say the same as what they are made of; a change without its base says nothing."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_examples import HEADER

from stillwatch.transport.wire import DecodeError, Unfolder, decode, encode, model_change, scores_message
from stillwatch.transport.wire import messages as m

NUMBER = st.none() | st.floats(-30_000.0, 30_000.0)
FRAMES = st.lists(
    st.tuples(NUMBER, st.none() | st.floats(0.0, 1e9), NUMBER, st.booleans(), st.integers(-1, 2**40), st.booleans()),
    min_size=1,
    max_size=40,
)


def scores_of(rows) -> list[m.Score]:
    return [
        m.Score(
            **HEADER | {"sequence": 0, "frame": 10 + 2 * i, "t_ns": 50_000_000 * i},
            value=value,
            rarity=rarity,
            frame_surprise=surprise,
            learning=learning,
            event=event,
            accepted=accepted,
            reason="" if accepted else "dark",
        )
        for i, (value, rarity, surprise, learning, event, accepted) in enumerate(rows)
    ]


@given(FRAMES)
def test_batch_says_every_score_to_eleven_bits(rows):
    scores = scores_of(rows)
    header = HEADER | {"t_ns": scores[-1].t_ns, "frame": scores[-1].frame}
    found = Unfolder().unfold(decode(encode(scores_message(5, scores, header))))
    assert [s.sequence for s in found] == list(range(5, 5 + len(scores)))
    for name in ("frame", "learning", "event", "accepted", "reason", "t_ns"):
        assert [getattr(s, name) for s in found] == [getattr(s, name) for s in scores]
    for name in ("value", "rarity", "frame_surprise"):
        said, read = ([getattr(s, name) for s in some] for some in (scores, found))
        assert [value is None for value in said] == [value is None for value in read]
        np.testing.assert_allclose([v for v in read if v is not None], [v for v in said if v is not None], 1e-3, 1e-7)


def test_shares_and_places_go_with_the_frames_that_have_them():
    plain = scores_of([(1.0, 2.0, None, False, -1, True)] * 3)
    places = [m.Position(latitude=12.5, longitude=-70.25), None]
    told = [({5: 0.75, 2: 0.25}, places[0]), None, ({9: 1.0}, places[1])]
    scores = [
        score
        if said is None
        else msgspec.structs.replace(
            score,
            topic_ids=np.array(list(said[0]), np.int64),
            topic_shares=np.array(list(said[0].values()), np.float32),
            nav=said[1],
        )
        for score, said in zip(plain, told, strict=True)
    ]
    header = HEADER | {"t_ns": scores[-1].t_ns, "frame": scores[-1].frame}
    first, second, third = Unfolder().unfold(decode(encode(scores_message(0, scores, header))))
    assert first.topic_ids.tolist() == third.topic_ids.tolist() == [2, 5, 9]
    assert first.topic_shares.tolist() == [0.25, 0.75, 0.0]
    assert third.topic_shares.tolist() == [0.0, 0.0, 1.0]
    assert (first.nav, second.nav, third.nav) == (places[0], None, None)
    assert second.topic_ids is second.topic_shares is None


@pytest.mark.parametrize("changes", [{"topic_shares": np.ones((1, 1), np.float16)}, {"topic_navs": [None]}])
def test_shares_that_do_not_fit_their_batch_are_refused(changes):
    batch = scores_message(
        0, scores_of([(None, None, None, True, -1, True)] * 3), HEADER | {"frame": 14, "t_ns": 100_000_000}
    )
    with pytest.raises(DecodeError, match="scores"):
        decode(encode(msgspec.structs.replace(batch, **changes)))


@pytest.mark.parametrize("changes", [{"values": np.zeros(1, np.float16)}, {"reasons": ["dark"]}, {"frame": 1}])
def test_batch_whose_lists_disagree_is_refused(changes):
    batch = scores_message(
        0, scores_of([(None, None, None, True, -1, True)] * 3), HEADER | {"frame": 14, "t_ns": 100_000_000}
    )
    fields = {name: getattr(batch, name) for name in batch.__struct_fields__} | {"frames": None} | changes
    with pytest.raises(DecodeError, match="scores"):
        decode(encode(m.Scores(**fields)))


def model(sequence: int, ids: list[int], seed: int) -> m.Model:
    rng = np.random.default_rng(seed)
    k = len(ids)
    return m.Model(
        **HEADER | {"sequence": sequence},
        which="patches",
        covariance="diagonal",
        n_dims=3,
        n_components=k,
        model_epoch=sequence,
        ids=np.array(ids),
        counts=rng.uniform(1, 9, k).astype(np.float32),
        weights=np.full(k, 1 / k, np.float32),
        means=rng.normal(size=(k, 3)).astype(np.float32),
        variances=rng.uniform(1, 2, (k, 3)).astype(np.float32),
        prior_mean=np.zeros(3, np.float32),
        prior_strength=1.0,
        prior_dof=4.0,
        prior_scale=np.ones(3, np.float32),
        concentration=1.0,
    )


def test_change_makes_the_whole_model_of_what_is_known():
    first, second = model(4, [7, 3, 5], 0), model(9, [3, 8, 7], 1)
    unfolder = Unfolder()
    unfolder.unfold(first)
    (whole,) = unfolder.unfold(decode(encode(model_change(first, second, [8, 3]))))
    assert (whole.sequence, whole.base, whole.roster) == (9, -1, None)
    assert whole.ids.tolist() == [3, 8, 7]
    np.testing.assert_array_equal(whole.counts, second.counts)
    np.testing.assert_array_equal(whole.means[:2], second.means[:2])
    np.testing.assert_array_equal(whole.means[2], first.means[0])
    np.testing.assert_array_equal(whole.variances[2], first.variances[0])


def test_change_that_moves_no_component_is_a_roster():
    first = model(4, [7, 3, 5], 0)
    unfolder = Unfolder()
    unfolder.unfold(first)
    (whole,) = unfolder.unfold(decode(encode(model_change(first, model(9, [5, 7], 1), []))))
    np.testing.assert_array_equal(whole.means, first.means[[2, 0]])


def test_change_of_another_model_than_the_one_known_says_nothing():
    unfolder = Unfolder()
    change = model_change(model(4, [7], 0), model(9, [7], 1), [7])
    assert not unfolder.has_base(change)
    assert list(unfolder.unfold(change)) == []
    unfolder.unfold(model(3, [7], 0))
    assert list(unfolder.unfold(change)) == []


def test_change_that_leaves_a_component_without_a_row_is_refused():
    first = model(4, [7], 0)
    unfolder = Unfolder()
    unfolder.unfold(first)
    with pytest.raises(DecodeError, match="component 8 has no row"):
        unfolder.unfold(model_change(first, model(9, [7, 8], 1), []))
