"""Agreement of clusters with labels, against scikit-learn's figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from stillwatch.tools.survey import agreement

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=40)


@given(PAIRS)
def test_figures_are_scikit_learns(pairs):
    labels, clusters = np.array(pairs).T
    found = agreement(labels, clusters)
    wanted = metrics.homogeneity_completeness_v_measure(labels, clusters)
    assert (found.homogeneity, found.completeness, found.v_measure) == pytest.approx(wanted, abs=1e-9)
    assert found.ari == pytest.approx(metrics.adjusted_rand_score(labels, clusters), abs=1e-9)


def test_confusion_counts_classes_by_clusters():
    found = agreement(["sand", "reef", "sand"], [1, 0, 0])
    assert found.classes == ["reef", "sand"]
    assert found.confusion.tolist() == [[1, 0], [1, 1]]
    assert found.figures()["nmi"] == found.v_measure
