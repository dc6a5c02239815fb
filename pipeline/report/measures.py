"""What each measure of the audit says, in words; by the first part of its name."""

from __future__ import annotations

MEASURES = {
    "positive_similarity": "mean similarity of two views of one sample",
    "negative_similarity": "mean similarity of views of different samples",
    "overlap": "of the two distributions: 0 where a threshold tells every pair, 1 where none does",
    "d_prime": "distance of the two means, in their spread",
    "nearer_negatives": "share of negatives that are nearer to an anchor than its positive",
    "info_nce_bound": "lower bound of the information that two views share, nats",
    "alignment": "mean squared distance of two views of one sample; 0 is perfect",
    "uniformity": "how evenly the sphere is covered; lower is more even",
    "effective_rank": "exponential of the spectrum's entropy: directions in use",
    "participation_ratio": "directions in use, dominated by the largest",
    "rankme": "exponential of the entropy of the singular values",
    "dimensions_99": "share of directions that hold 99 % of the variance",
    "anisotropy": "mean similarity of different samples: how narrow the cone is that holds them",
    "hubness": "skewness of how often a row is among others' nearest; 0 is even",
    "antihubs": "share of rows that are among nobody's nearest",
    "local_dimensions": "directions in use within a neighbourhood",
    "local_dimensions_low": "the same of the flattest one in twenty",
    "neighbour_purity": "share of nearest neighbours with the same label",
    "false_negatives": "share of an anchor's nearest negatives with its own label",
    "cluster_nmi": "agreement of k-means clusters with the label, 0 to 1",
    "cluster_ari": "the same, with 0 at chance: 1 where they agree",
    "class_effective_rank": "directions in use within a class, mean over classes",
    "loss_below_log_k": "log K minus the loss, nats",
    "matching": "share of views that find the other view of their sample among all",
    "spread": "variance in mean square length; 0: all rows are one point",
    "gain": "how much better a linear probe reads the label from h than from the untrained encoder, as a skill",
    "disentanglement": "whether a direction is of one factor, 0 to 1",
    "completeness": "whether a factor is on one direction, 0 to 1",
    "mig": "gap between the two directions that know most of a factor, 0 to 1",
}
SHOWN_ABOVE = frozenset(
    ("movement", "retrieval", "label_kept", "transformation", "boundary", "preserved", "detail", "costs")
)
"""Measures that stand in the tables of declared against achieved, not in that of all others."""


def meaning(measure: str) -> str:
    """The words of one measure; empty where there are none."""
    return MEASURES.get(measure.partition(".")[0], "")
