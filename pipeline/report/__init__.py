"""Floor 2: the report. ``collect`` reads the stages' folders, ``figures`` flattens, ``charts`` draws, ``page`` writes.

A pure function of files: the same inputs give the same bytes. It trains and measures nothing and needs no torch.
``laboratory`` holds the formulas of the page's laboratory, whose scripts compute the same in the browser.
"""
