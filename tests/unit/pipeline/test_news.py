"""What a live plane is told: a model when it says something new, a picture when it shows something else."""

import cv2
import msgspec
import numpy as np
from wire_examples import HEADER

from stillwatch.epochs import EpochExemplar
from stillwatch.pipeline.exemplar_news import MOST_EXAMPLES, ExemplarNews
from stillwatch.pipeline.model_news import ModelNews
from stillwatch.pipeline.score_batch import ScoreBatch
from stillwatch.transport.wire import Unfolder
from stillwatch.transport.wire import messages as m


def model(sequence: int, t_s: float, means: list[float], counts: list[float] | None = None) -> m.Model:
    k = len(means)
    counts = counts or [1000.0] * k
    return m.Model(
        **HEADER | {"sequence": sequence, "t_ns": round(t_s * 1e9)},
        which="patches",
        covariance="diagonal",
        n_dims=1,
        n_components=k,
        model_epoch=sequence,
        ids=np.arange(k),
        counts=np.array(counts, np.float32),
        weights=np.array(counts, np.float32) / sum(counts),
        means=np.array(means, np.float32)[:, None],
        variances=np.ones((k, 1), np.float32),
        prior_mean=np.zeros(1, np.float32),
        prior_strength=1.0,
        prior_dof=2.0,
        prior_scale=np.ones(1, np.float32),
        concentration=1.0,
    )


def test_first_model_is_told_whole():
    news, first = ModelNews(), model(0, 0.0, [0.0, 50.0])
    assert news.is_due(first)
    assert news.tell(first).base == -1


def test_model_that_says_nothing_new_is_never_told():
    news = ModelNews()
    news.tell(model(0, 0.0, [0.0, 50.0]))
    assert not news.is_due(model(1, 3000.0, [0.0, 50.0], [2000.0, 2000.0]))


def test_large_news_are_told_at_once_and_small_ones_after_a_while():
    news = ModelNews()
    news.tell(model(0, 0.0, [0.0, 50.0]))
    assert news.is_due(model(1, 2.6, [0.0, 60.0]))  # 10 deviations: 25 nats
    assert not news.is_due(model(1, 2.6, [0.0, 51.0]))  # less than a tenth
    assert news.is_due(model(1, 300.0, [0.0, 51.0]))


def test_change_holds_what_moved_and_adds_up_to_the_model():
    news, unfolder = ModelNews(), Unfolder()
    unfolder.unfold(news.tell(model(0, 0.0, [0.0, 50.0, -50.0])))
    change = news.tell(model(4, 10.0, [0.0, 60.0, -50.0]))
    assert (change.base, change.ids.tolist()) == (0, [1])
    (whole,) = unfolder.unfold(change)
    np.testing.assert_array_equal(whole.means[:, 0], [0.0, 60.0, -50.0])


def test_new_component_comes_with_its_row():
    news = ModelNews()
    news.tell(model(0, 0.0, [0.0]))
    assert news.tell(model(1, 10.0, [0.0, 50.0])).ids.tolist() == [1]


def test_model_is_whole_again_when_time_begins_anew():
    news = ModelNews()
    news.tell(model(0, 0.0, [0.0, 50.0]))
    assert news.tell(model(1, -5.0, [0.0, 60.0])).base == -1


def test_last_model_of_a_run_is_told_whatever_it_says_unless_it_was_told():
    news = ModelNews()
    news.tell(model(0, 0.0, [0.0, 50.0]))
    assert news.is_due(model(1, 1.0, [0.0, 50.0]), at_once=True)
    assert not news.is_due(model(0, 1.0, [0.0, 50.0]), at_once=True)


def test_name_that_a_person_gave_is_news():
    news, first = ModelNews(), model(0, 0.0, [0.0])
    news.tell(first)
    assert news.is_due(msgspec.structs.replace(first, labels={"0": "kelp"}))


def jpeg(brightness: int, bright_spot: bool) -> bytes:
    picture = np.full((120, 160, 3), brightness, np.uint8)
    if bright_spot:
        picture[40:60, 60:80] = 255
    return cv2.imencode(".jpg", picture)[1].tobytes()


def exemplar(number: int, picture: bytes, removed: tuple[int, ...] | None = (), note: bytes = b"") -> EpochExemplar:
    return EpochExemplar(number, "frame", number, 0, picture, removed=removed, note=note)


def test_exemplar_that_looks_like_one_told_before_goes_by_its_id():
    news = ExemplarNews()
    assert [e.id for e in news.tell([exemplar(1, jpeg(90, False))])] == [1]
    assert news.tell([exemplar(2, jpeg(100, False))]) == []  # lighter all over
    assert news.told_as(2) == 1
    assert news.told_as(-1) == -1


def test_exemplar_that_shows_something_else_is_told():
    news = ExemplarNews()
    news.tell([exemplar(1, jpeg(90, False))])
    assert [e.id for e in news.tell([exemplar(2, jpeg(90, True))])] == [2]


def test_exemplar_told_before_there_were_topics_is_told_once_more_with_them():
    news = ExemplarNews()
    news.tell([exemplar(1, jpeg(90, False))])
    (told,) = news.tell([exemplar(2, jpeg(90, False), removed=(1,), note=b"map")])
    assert (told.id, told.removed) == (2, (1,))
    assert news.tell([exemplar(3, jpeg(90, False), note=b"another")]) == []
    assert news.told_as(3) == 2


def test_pictures_of_components_long_gone_are_forgotten():
    """Components come and go, each with its own id, for as long as a run lasts: what is kept of them is bounded."""
    news = ExemplarNews()
    offered = [exemplar(number, jpeg(90, False), None) for number in range(MOST_EXAMPLES + 2)]
    for one in offered:
        assert news.tell([one]) == [one]
    assert news.tell([offered[-1]]) == []
    assert news.tell([offered[0]]) == [offered[0]]
    (told,) = news.tell([exemplar(9999, jpeg(90, True))])
    assert told.removed == (), "a station keeps the picture of a component that only was not told for long"


def test_exemplar_told_stays_while_it_stands_for_another_and_is_removed_after():
    news = ExemplarNews()
    news.tell([exemplar(1, jpeg(90, False))])
    news.tell([exemplar(2, jpeg(90, False), removed=(1,))])
    (told,) = news.tell([exemplar(3, jpeg(90, True), removed=(2,))])
    assert (told.id, told.removed) == (3, (1,))


def test_example_of_a_component_is_told_again_when_its_picture_changed():
    news = ExemplarNews()
    assert len(news.tell([exemplar(7, jpeg(90, False), None)])) == 1
    assert len(news.tell([exemplar(7, jpeg(90, False), None)])) == 0
    assert len(news.tell([exemplar(7, jpeg(90, True), None)])) == 1


def batches(times_s: list[float]) -> list[list[int]]:
    batch = ScoreBatch(lambda **times: HEADER | times)
    unfolder, found = Unfolder(), []
    scores = [m.Score(**HEADER | {"frame": i, "t_ns": round(t * 1e9)}, value=1.0) for i, t in enumerate(times_s)]
    for made in [*(made for score in scores for made in batch.add(score)), *batch.flush()]:
        found.append([score.frame for score in unfolder.unfold(made)])
    return found


def test_batch_holds_a_second():
    assert batches([0.25 * i for i in range(10)]) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_slow_camera_waits_for_no_second():
    assert batches([0.0, 2.0, 4.0, 6.0]) == [[0, 1], [2], [3]]  # but the first, whose next nobody knows


def test_time_that_begins_anew_or_leaps_ends_a_batch():
    assert batches([5.0, 5.1, 0.0, 0.1]) == [[0, 1], [2, 3]]
    assert batches([0.0, 100.0]) == [[0], [1]]
