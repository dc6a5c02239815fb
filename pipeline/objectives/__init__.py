"""Objectives: the family, written out by hand, and the plain functions of tensors for any training loop.

A member is a frozen spec with one method, ``terms(contrast, learned)``, and three constants: ``uses_temperature``,
``metrics`` (those it accepts), and ``learns``: the names of the scalars that are trained beside the encoder, each of
which is also the field that holds its start. ``terms`` reads them from ``learned``, or takes the start.
``starts_at(candidates)`` is its loss where every similarity is the same, nothing told apart: what a curve is drawn
beside; None where that depends on the similarity.
"""

from typing import Annotated

from pydantic import Field

from pipeline.contrast import Term, mean_terms
from pipeline.objectives.alignment_uniformity import AlignmentUniformity, alignment_uniformity
from pipeline.objectives.debias import ClassPrior, class_prior
from pipeline.objectives.debiased import Debiased, debiased
from pipeline.objectives.decoupled import Decoupled, decoupled
from pipeline.objectives.hard_negative import HardNegative, hard_negative
from pipeline.objectives.margin import Margin, siamese_margin
from pipeline.objectives.nce import NCE, nce
from pipeline.objectives.negative_sampling import NegativeSampling, negative_sampling
from pipeline.objectives.nt_xent import NTXent, info_nce, information_bound, nt_xent
from pipeline.objectives.regression import Regression, regression
from pipeline.objectives.sigmoid import Sigmoid, sigmoid
from pipeline.objectives.supervised import Supervised, supervised_contrastive
from pipeline.objectives.triplet import Triplet, triplet

Objective = Annotated[
    NTXent
    | Decoupled
    | Debiased
    | HardNegative
    | Supervised
    | NCE
    | NegativeSampling
    | Sigmoid
    | Margin
    | Triplet
    | AlignmentUniformity
    | Regression,
    Field(discriminator="kind"),
]

__all__ = [
    "NCE",
    "AlignmentUniformity",
    "ClassPrior",
    "Debiased",
    "Decoupled",
    "HardNegative",
    "Margin",
    "NTXent",
    "NegativeSampling",
    "Objective",
    "Regression",
    "Sigmoid",
    "Supervised",
    "Term",
    "Triplet",
    "alignment_uniformity",
    "class_prior",
    "debiased",
    "decoupled",
    "hard_negative",
    "info_nce",
    "information_bound",
    "mean_terms",
    "nce",
    "negative_sampling",
    "nt_xent",
    "regression",
    "siamese_margin",
    "sigmoid",
    "supervised_contrastive",
    "triplet",
]
