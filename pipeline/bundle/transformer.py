"""A bundle as a scikit-learn transformer: pictures in, vectors out, in a Pipeline before any estimator.

make_pipeline(BundleTransformer("work/export/digits"), LogisticRegression()).fit(paths, labels)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pipeline.bundle import Bundle, load
from pipeline.bundle.reading import Raw
from pipeline.bundle.vectors import Layer, Rows
from pipeline.spec import Refusal


class BundleTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embed pictures with a bundle; nothing is learnt from them.

    Args:
        bundle: its folder or URL.
        layer: h, before the projection; z, where the loss acted.
        batch: pictures in one pass.
    """

    def __init__(self, bundle: str, layer: Layer = "h", batch: int = 256):
        self.bundle, self.layer, self.batch = bundle, layer, batch

    def fit(self, X: Sequence[Raw] | np.ndarray, y: Any = None) -> Self:
        """Open the bundle; X and y are not read. Raises Refusal."""
        opened = load(self.bundle)
        self._opened: Bundle | None = opened
        self.identity_ = opened.identity
        self.n_features_out_ = opened.dim(self.layer)
        return self

    def transform(self, X: Sequence[Raw] | np.ndarray) -> Rows:
        """Pictures, as ``Bundle.embed`` takes them, to (N, D). Raises Refusal."""
        check_is_fitted(self)
        return self.opened.embed(X, self.batch, self.layer).values

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``h0``, ``h1`` …"""
        check_is_fitted(self)
        return np.array([f"{self.layer}{number}" for number in range(self.n_features_out_)], dtype=object)

    @property
    def opened(self) -> Bundle:
        """The bundle, opened; anew in another process. Raises Refusal where it is another one by now."""
        if self._opened is None:
            found = load(self.bundle)
            if found.identity != self.identity_:
                raise Refusal(f"{self.bundle}: another bundle than the one that was fitted; fit again")
            self._opened = found
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        """Without the network: it is opened again where it is needed."""
        return {**super().__getstate__(), **({"_opened": None} if hasattr(self, "_opened") else {})}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "identity_")
