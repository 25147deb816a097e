"""``kspan fit``: choose features, prove how good they are, write a record and a report."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kspan.cli import options
from kspan.cli.checks import check_numbers, check_sizes, check_solver
from kspan.cli.errors import FAILED, check_outputs, complain, guarded, require
from kspan.cli.inputs import Reading, Rules, feature_places, load_table, reads_file, watched
from kspan.cli.options import Estimator, Level
from kspan.cli.progress import Watcher

if TYPE_CHECKING:
    from kspan.covariance import Covariance
    from kspan.io import Table

# A report shows what a budget that is larger by this factor would buy.
MORE_MONEY = 1.1


@guarded
@reads_file
def fit(
    data: options.Data,
    n_components: options.ComponentsOrShare = "2",
    n_features: Annotated[
        int | None,
        typer.Option(
            "--features", "-k", min=1,
            help="Number of features to choose; in each component, if they have their own "
            "(--estimator). By default ten for each component, at most half of all; a fifth for "
            "nonnegative and separate; as a penalty has it for orthonormal.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="In the place of -k: the fewest that keep this share of what PCA does."),
    ] = None,
    estimator: Annotated[
        Estimator,
        typer.Option(
            help="features: all components share k features. The others have k features in each "
            "component: nonnegative, orthonormal, or separate (one after the other).",
        ),
    ] = Estimator.FEATURES,
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,...",
            help="Orthonormal: the most features of each component, in place of -k for all.",
        ),
    ] = None,
    total: Annotated[
        int | None,
        typer.Option(min=1, help="Orthonormal: the most features of all components together."),
    ] = None,
    disjoint: Annotated[
        bool,
        typer.Option("--disjoint", help="Orthonormal: no two components share a feature."),
    ] = False,
    criterion: options.Question = options.Criterion.VARIANCE,
    ridge: options.Ridge = None,
    solver: options.Solver = None,
    scale: options.Scale = False,
    precomputed: options.Precomputed = False,
    missing: options.MissingRule = options.Missing.RAISE,
    psd: options.PsdRule = options.Psd.MEND,
    include: options.Include = None,
    exclude: options.Exclude = None,
    seed: options.Seed = 0,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify", help="Prove how good the choice is.", rich_help_panel=options.PROVING
        ),
    ] = False,
    level: Annotated[
        Level | None,
        typer.Option(
            help="How hard to try: fast (closed forms), tight (a relaxation), or exact, which "
            "searches until the optimum is proved, where the bounds leave few enough features to "
            "search. With several components on more than 2500 features and --scale, it does no "
            "more than tight.",
            rich_help_panel=options.PROVING, show_default="tight",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Where a long search is kept, and goes on from when the command is run again.",
            rich_help_panel=options.PROVING,
        ),
    ] = None,
    with_path: Annotated[
        bool,
        typer.Option(
            "--path", help="Also show other numbers of features in the report.",
            rich_help_panel=options.WRITING,
        ),
    ] = False,
    resamples: Annotated[
        int,
        typer.Option(
            "--stability", min=0, metavar="N", rich_help_panel=options.WRITING,
            help="Also choose (by IPU) on N bootstrap resamples: how often is each feature chosen?",
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write the record of the fit, for report and verify.",
            rich_help_panel=options.WRITING,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write an HTML report.", rich_help_panel=options.WRITING),
    ] = None,
    csv: options.Table = None,
    h5ad: Annotated[
        Path | None,
        typer.Option(
            help="Write a copy of the H5AD file with the result in it.",
            rich_help_panel=options.WRITING,
        ),
    ] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    *,
    rules: Rules,
    how: Reading,
) -> None:  # fmt: skip
    """Choose k features whose m principal components explain the most variance.

    For example:

      kspan fit expression.csv -m 3 -k 50 --certify --report fit.html

      kspan fit genes_by_samples.tsv.gz --transpose -m 2 -k 30 --scale --out fit.kspan

      kspan fit breast_cancer -m 3 -k 12 --scale --level exact --json

      kspan fit sensors.csv -m 2 --costs prices.csv --budget 100 --max-correlation 0.95
    """
    rules.require_shared(estimator)
    rules.require_whole()
    check_outputs(out, report, csv, h5ad, checkpoint, source=data)
    if report is not None:
        require("jinja2", "plotly", extra="report", what="--report")
    check_numbers(
        share=share, time_limit=time_limit, n_jobs=n_jobs, max_correlation=rules.max_correlation,
        budget=rules.budget,
    )  # fmt: skip
    check_solver(solver, estimator, criterion)
    own = _counts(estimator, n_components, n_features, counts, total, disjoint=disjoint)
    if (include or exclude) and estimator is not Estimator.FEATURES:
        raise ValueError(f"--include and --exclude need --estimator {Estimator.FEATURES}.")
    if estimator is Estimator.ORTHONORMAL:
        proves = certify or level is not None
        if n_jobs is not None and not any(own.values()):
            raise ValueError(f"--jobs is not there for --estimator {estimator} without counts.")
        if proves and not any(own.values()):
            raise ValueError(
                f"--certify with --estimator {estimator} needs -k, --counts or --total."
            )
    each = own.get("n_nonzero_coefs")
    ks = each if isinstance(each, list) else [] if n_features is None else [n_features]
    sizes = partial(
        # How many a share takes is known when the data is.
        check_sizes, estimator, 1 if n_components < 1 else n_components, ks, total=total,
        option="-k" if counts is None else "--counts",
    )  # fmt: skip
    sizes()
    searches = (certify and level is None) or level not in (None, Level.FAST) or solver == "exact"
    if checkpoint is not None and not searches:
        raise ValueError("--checkpoint needs --certify, or --level tight or exact.")
    if h5ad is not None and (how.transpose or not data.endswith(".h5ad")):
        raise ValueError("--h5ad writes a copy of the data: an H5AD file, cells in rows.")
    if resamples and estimator is not Estimator.FEATURES:
        raise ValueError(f"--stability needs --estimator {Estimator.FEATURES}.")
    asked = options.asked_for(criterion, ridge, estimator)
    if resamples and criterion is not options.Criterion.VARIANCE:
        raise ValueError(f"--stability needs --criterion {options.Criterion.VARIANCE}.")
    if resamples == 1:
        raise ValueError("--stability 1: one resample shows nothing; take 50.")

    from kspan.covariance import as_covariance

    with Watcher(quiet) as watcher:
        watcher.stage(f"reading {data}")
        table, is_covariance, weights = load_table(
            data, how, quiet=quiet, as_json=as_json, precomputed=precomputed,
            allow_missing=missing is not options.Missing.RAISE,
        )  # fmt: skip
        if resamples and is_covariance:
            raise ValueError("--stability needs data, not a covariance matrix.")
        sizes(n_features=table.X.shape[1], source=table.source)
        model = _estimator(
            estimator, n_components, n_features,
            own=own,
            share=share,
            solver=solver,
            scale=scale,
            covariance="precomputed" if is_covariance else None,
            missing=str(missing),
            psd=str(psd),
            include=feature_places(include, "--include", table),
            exclude=feature_places(exclude, "--exclude", table),
            rules=rules.parameters(table) | asked,
            certify=str(level) if level else certify,
            random_state=seed,
            time_limit=time_limit,
            n_jobs=n_jobs,
            callback=watcher.on_step,
            solver_options=None if checkpoint is None else {"checkpoint": str(checkpoint)},
        )  # fmt: skip
        started = time.perf_counter()
        # Read and measured once, for the fit, the path, the resamples and the record.
        measured = as_covariance(
            watched(table.X, watcher.on_rows),
            kind="data" if model.covariance is None else "covariance",
            scale=scale, feature_names=table.feature_names, sample_weight=weights,
            missing=str(missing), psd=model.psd,
        )  # fmt: skip
        model.fit(measured)
        seconds = time.perf_counter() - started
        path_of = str(estimator) if with_path else None
        more_money = report is not None and rules.budget is not None
        more_money = more_money and criterion is options.Criterion.VARIANCE
        record = _record(
            model, measured, table, seconds, watcher, path_of, resamples, more_money=more_money
        )
        places = {"record": out, "report": report, "csv": csv, "h5ad": h5ad}
        files = {name: str(place) for name, place in places.items() if place is not None}
        _write(record, files, watcher, source=data, layer=how.layer)

    from kspan.cli import show

    if as_json:
        show.write_json({**record.to_dict(), "files": files})
    else:
        show.print_fit(record, files)
    statuses = {record.status, *(proof.status.value for proof in record.certificates)}
    statuses |= {part.status for part in (record.path, record.stability) if part is not None}
    if "interrupted" in statuses:
        complain("interrupted: this is the best answer so far")
        raise typer.Exit(FAILED)


def _estimator(
    kind: Estimator, n_components: int | float, k: int | None, *, own: dict[str, Any],
    share: float | None, solver: str | None, include: Any, exclude: Any, rules: dict[str, Any],
    certify: bool | str,
    n_jobs: int | None, **common: Any,
) -> Any:  # fmt: skip
    """Make the estimator that the options describe."""
    import kspan

    if solver is not None:
        common["solver"] = solver
    if kind is Estimator.FEATURES:
        return kspan.FeatureSparsePCA(
            n_components, k, explained_share=share, include=include, exclude=exclude,
            certify=certify, n_jobs=n_jobs, **rules, **common,
        )  # fmt: skip
    if kind is Estimator.NONNEGATIVE:
        return kspan.NonnegativeSparsePCA(n_components, k, certify=certify, n_jobs=n_jobs, **common)
    if kind is Estimator.ORTHONORMAL:
        return kspan.StiefelSparsePCA(n_components, certify=certify, n_jobs=n_jobs, **own, **common)
    return kspan.ElementSparsePCA(n_components, k, certify=certify, n_jobs=n_jobs, **common)


def _counts(
    kind: Estimator, n_components: int | float, k: int | None, counts: str | None,
    total: int | None, *, disjoint: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return how many features orthonormal components may have."""
    if (counts, total, disjoint) == (None, None, False):
        return {"n_nonzero_coefs": k}
    if kind is not Estimator.ORTHONORMAL:
        raise ValueError(
            f"--counts, --total and --disjoint need --estimator {Estimator.ORTHONORMAL}."
        )
    each: int | list[int] | None = k
    if counts is not None:
        if k is not None:
            raise ValueError("Give -k or --counts, not both.")
        try:
            each = [int(part) for part in counts.split(",")]
        except ValueError:
            raise ValueError(f"--counts {counts!r} must be whole numbers, as in 5,3,3.") from None
        if n_components < 1:
            raise ValueError("--counts needs a number of components, not a share (-m).")
        if len(each) != n_components:
            raise ValueError(
                f"--counts {counts} has {len(each)} numbers for {n_components} components (-m); "
                "give one for each, or -k for all."
            )
    if disjoint and each is None and total is None:
        raise ValueError("--disjoint needs -k, --counts or --total.")
    return {"n_nonzero_coefs": each, "n_nonzero_total": total, "disjoint": disjoint}


def _record(
    model: Any, measured: "Covariance", table: "Table", seconds: float, watcher: Watcher,
    path_of: str | None, resamples: int, *, more_money: bool,
) -> Any:  # fmt: skip
    """Make the record, with the further studies that were asked for.

    `path_of` is the estimator of the path, or None if there is to be none; `more_money` asks what
    a larger budget would buy.
    """
    import kspan
    from kspan.records import FitRecord

    path = stability = budgets = None
    asked: dict[str, Any] = {}
    if path_of or resamples or more_money:
        left, parameters = model.time_limit, model.get_params()
        names = (
            "include", "exclude", "disjoint", "scale", "covariance", "missing", "random_state",
        )  # fmt: skip
        question = {"criterion", "ridge"} & parameters.keys()
        asked = {name: parameters[name] for name in names if name in parameters}
        if "groups" in parameters:
            asked["panel"] = kspan.Panel.of(parameters)
        asked["time_limit"] = None if left is None else max(left - seconds, 0.1)
    if path_of:
        watcher.stage("other numbers of features")
        path = kspan.sparsity_path(
            measured,
            model.n_components_,
            estimator=path_of,
            callback=watcher.on_step,
            **asked,
            **{name: parameters[name] for name in question},
        )
        if asked["time_limit"] is not None:
            asked["time_limit"] = max(asked["time_limit"] - path.seconds, 0.1)
    if resamples:
        watcher.stage(f"{resamples} resamples")
        stability = kspan.selection_stability(
            measured,
            model.n_components_,
            model.n_features_to_select_,
            n_resamples=resamples,
            n_jobs=model.n_jobs,
            **asked,
        )
    if more_money:
        watcher.stage("other budgets")
        budgets = kspan.budget_path(
            measured, model.n_components_, n_features_to_select=model.n_features_to_select,
            budgets=[MORE_MONEY * model.budget], certify=model.certify, callback=watcher.on_step,
            **asked,
        )  # fmt: skip
    watcher.stage("record")
    return FitRecord.from_estimator(
        model, measured, source=Path(table.source).name, feature_names=table.feature_names,
        sample_names=table.sample_names, labels=table.labels,
        label_name=table.label_name or "label", path=path, stability=stability,
        budget_path=budgets, seconds=seconds,
    )  # fmt: skip


def _write(
    record: Any, files: dict[str, str], watcher: Watcher, *, source: str, layer: str | None
) -> None:
    """Write the record in every form that was asked for."""
    if "record" in files:
        record.save(files["record"])
    if "report" in files:
        from kspan.report import write_report

        watcher.stage("report")
        write_report(record, files["report"])
    if "csv" in files:
        from kspan.cli.show import write_csv

        write_csv(record, Path(files["csv"]))
    if "h5ad" in files:
        from kspan.anndata import copy_with_result

        copy_with_result(source, files["h5ad"], record, layer=layer)
