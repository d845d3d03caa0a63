"""topics-...: binding names, known corpora, peers whose densities are densities."""

import argparse

import numpy as np
import pytest
from data_location import data_dir
from printed import of_schema

from stillwatch.base.errors import UsageError
from stillwatch.tools.experiments.topics import command, corpora, peers

BINDING = {
    "method", "memory", "groups", "documents", "topics", "log_likelihood", "free_energy_ratio", "ari", "accuracy",
    "seconds", "cpu_seconds", "state_bytes", "peak_rss_mb",
}  # fmt: skip


def run(capsys, experiment, *options):
    parser = argparse.ArgumentParser()
    parser.set_defaults(experiment=experiment.split()[1])
    command.add_arguments(parser)
    assert command.main(parser.parse_args([*options, "--json"])) == 0
    rows = of_schema(experiment, capsys.readouterr().out)["rows"]
    assert all(set(row) >= BINDING for row in rows)
    return {row["method"]: row for row in rows}


def test_known_topics_are_found_and_the_mixture_knows_less_of_a_word(capsys):
    rows = run(capsys, "experiment topics-synthetic", "--documents", "60", "--memory", "1000")
    assert set(rows) == {"stillwatch, drawn", "stillwatch, by topic", "batch", "mixture", "lda on words"}
    assert rows["batch"]["documents"] == rows["batch"]["groups"] == 45
    for method in ("stillwatch, drawn", "stillwatch, by topic"):
        assert rows[method]["ari"] > 0.95
        assert rows[method]["log_likelihood"] > max(
            rows[peer]["log_likelihood"] for peer in ("mixture", "lda on words")
        )


def test_pictures_are_segmented_in_less_memory_than_the_batch(capsys):
    data_dir("caltech")
    rows = run(capsys, "experiment topics-segmentation", "--documents", "4", "--memory", "2600")
    assert rows["batch"]["free_energy_ratio"] == 1.0
    assert rows["stillwatch"]["free_energy_ratio"] > 0.9
    assert rows["stillwatch"]["state_bytes"] > 0


def test_labels_of_patches_say_what_ground_a_made_transect_shows(capsys):
    rows = run(capsys, "experiment topics-ground", "--documents", "240", "--seed", "1")
    assert set(rows) == {f"{method}, seed 1" for method in ("as told", "as told, second half", "last model")}
    assert rows["last model, seed 1"]["ari"] > 0.75
    assert rows["as told, seed 1"]["documents"] > rows["as told, second half, seed 1"]["documents"] == 120
    assert all(2 <= row["topics"] <= 8 for row in rows.values())


def test_pixels_have_their_place_from_the_centre_and_their_colour():
    pixels = corpora.motorbike_pixels(data_dir(), 3, 200)
    assert pixels.words.shape == (600, 5)
    assert pixels.n_documents == 3
    np.testing.assert_allclose(pixels.words.std(axis=0), 1.0)
    assert np.abs(pixels.words[:, :2].mean(axis=0)).max() < 0.2


def test_a_corpus_sorted_by_topic_has_the_same_documents():
    corpus = corpora.synthetic(0, n_documents=12, n_words=10)
    other = corpora.sorted_by_topic(corpus)
    np.testing.assert_array_equal(np.sort(corpus.words, axis=0), np.sort(other.words, axis=0))
    main = [np.bincount(other.topics[other.documents == j]).argmax() for j in range(12)]
    assert main == sorted(main)


def test_quantised_words_have_the_densities_of_their_members():
    rng = np.random.default_rng(0)
    words = np.concatenate([rng.normal(-9.0, 1.0, (400, 1)), rng.normal(9.0, 2.0, (400, 1))])
    quantised = peers.QuantisedWords(words, 2)
    grid = np.linspace(-30.0, 30.0, 6001)[:, None]
    np.testing.assert_allclose(np.exp(quantised.log_densities(grid)).sum(axis=0) * 0.01, 1.0, atol=1e-3)
    corpus = corpora.Corpus(words, np.repeat([0, 1], 400))
    np.testing.assert_array_equal(np.sort(quantised.histograms(corpus), axis=1), [[0.0, 400.0]] * 2)


def test_the_nearest_document_has_the_same_proportions():
    train = np.array([[1.0, 9.0], [50.0, 50.0], [9.0, 1.0]])
    np.testing.assert_array_equal(peers.nearest(train, np.array([[80.0, 8.0], [5.0, 6.0]])), [2, 1])


@pytest.mark.parametrize("wrong", [("--memory", "0"), ("--groups", "-1"), ("--documents", "2"), ("--classes", "1")])
def test_impossible_sizes_are_refused(wrong):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(UsageError, match=wrong[0]):
        command.main(parser.parse_args(wrong))
