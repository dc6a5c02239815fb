"""Floor 2: what a trained space does with transformations, held against what was declared of it.

``declared``: how far a picture moves under what should not matter, and under what nobody declared; ``boundary``: what
of a transformation is readable from h and no longer from z; ``preserved`` and ``detail``: what stayed readable, asked
for or not; ``factors``: how the factors lie on the directions. ``achieve`` puts them together, from top to bottom.
"""
