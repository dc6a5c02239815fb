"""The page: one HTML file without requests, written by jinja with everything escaped; no script but the package's own.

Every figure that stands in metrics.json is written by ``figure`` from that very mapping, in a ``data`` element with its
name and full value, so that page and file cannot differ.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.report.answers import answer, labels_read, reach, span
from pipeline.report.cells import cell, class_name, entry_label, near_words, sample_words, sheet_rule, webp
from pipeline.report.comparison import differences
from pipeline.report.drawings import drawings
from pipeline.report.figures import (
    LAYERS,
    MOVED,
    UNMOVED,
    Figures,
    compared,
    gain_key,
    knn,
    labels,
    measure_key,
    number_key,
    probe_key,
    verdict,
)
from pipeline.report.first_batch import SHOWN, first_batch
from pipeline.report.forms import FORMS, count, measured
from pipeline.report.laboratory import false_negatives, same_class_share
from pipeline.report.laboratory_runs import PRESETS, example, priors, run
from pipeline.report.map import KINDS, class_columns, dots, maps, told, view_box
from pipeline.report.map import sign as class_sign
from pipeline.report.matrix import matrix, sign
from pipeline.report.measures import SHOWN_ABOVE, meaning
from pipeline.report.method import method
from pipeline.report.minute import WORDS, changes, doubts, ignored, leaders, told_labels, trusted
from pipeline.report.pieces import DASH, address, badge, data, figure, interval, strip
from pipeline.report.readers import CURATED
from pipeline.report.relations import false_negatives_of, negatives_in, relations
from pipeline.report.result import STAGES, Result
from pipeline.report.scripts import scripts
from pipeline.report.telling import (
    RANKED,
    alarms,
    listed,
    probe_words,
    refusals,
    refused_parts,
    section,
    shown,
    written,
)


def page(results: Sequence[Result], metrics: Mapping[str, Figures]) -> str:
    """The whole page as text.

    Args:
        results: the specs in the order of the page.
        metrics: name of a spec to its flat figures, as metrics.json holds them.
    """
    environment = Environment(
        loader=PackageLoader("pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(count=count, shown=shown, written=written, measured=measured, method=method)
    environment.filters["probe_words"] = probe_words
    environment.filters["form_of"] = lambda value, form: FORMS[form](value)
    environment.globals.update(
        figure=lambda name, key, form="number": figure(metrics[name], key, form),
        data=data,
        badge=badge,
        knn=knn,
        labels=labels,
        compared=compared,
        verdict=verdict,
        probe_key=probe_key,
        measure_key=measure_key,
        number_key=number_key,
        gain_key=gain_key,
        section=section,
        listed=listed,
        strip=strip,
        refusals=refusals,
        alarms=alarms,
        address=address,
        digest=lambda text: hashlib.sha256(text.encode()).hexdigest(),
        refused_parts=refused_parts,
        cell=cell,
        class_name=class_name,
        class_sign=class_sign,
        class_columns=class_columns,
        dots=dots,
        entry_label=entry_label,
        maps=maps,
        near_words=near_words,
        sample_words=sample_words,
        sheet_rule=sheet_rule,
        told=told,
        view_box=view_box,
        webp=webp,
        KINDS=KINDS,
        trusted=trusted,
        told_labels=told_labels,
        ignored=ignored,
        changes=changes,
        doubts=doubts,
        leaders=leaders,
        WORDS=WORDS,
        unfinished=lambda result: [stage for stage in STAGES if result.stages[stage].state == "missing"],
        meaning=meaning,
        differences=lambda specs: differences([result.content for result, *_ in specs]),
        matrix=matrix,
        sign=sign,
        relations=relations,
        false_negatives_of=false_negatives_of,
        negatives_in=negatives_in,
        false_negatives=false_negatives,
        same_class_share=same_class_share,
        SHOWN=SHOWN,
        SHOWN_ABOVE=SHOWN_ABOVE,
        RANKED=RANKED,
        CURATED=CURATED,
        answer=answer,
        reach=reach,
        span=span,
        labels_read=labels_read,
        interval=interval,
        LAYERS=LAYERS,
        LAYER_WORDS={"h": "h", "z": "z", "raw": "raw input", "untrained": "untrained"},
        MOVED=MOVED,
        UNMOVED=UNMOVED,
        STAGES=STAGES,
        DASH=DASH,
    )
    drawn = [drawings(result, f"s{number}-") for number, result in enumerate(results)]
    views = [base64.b64encode(result.views).decode() for result in results]
    batches = [
        first_batch(result.content, result.card, result.codes) if result.card is not None and result.codes else None
        for result in results
    ]
    known = priors(results)
    return environment.get_template("page.html").render(
        specs=list(zip(results, drawn, views, batches, strict=True)),
        results=results,
        scripts=scripts(),
        readings=example(),
        presets=PRESETS,
        priors=known,
        runs=[run(result, known) for result in results],
    )
