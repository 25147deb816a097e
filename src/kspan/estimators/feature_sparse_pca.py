"""`FeatureSparsePCA`: principal components that all use the same k features."""

from kspan.estimators.covariance_estimator import SparseProjection
from kspan.estimators.shared_features import FeatureSparseEstimator
from kspan.method_tables import lists_methods
from kspan.problem import RowSparseProblem


@lists_methods(RowSparseProblem)
class FeatureSparsePCA(SparseProjection, FeatureSparseEstimator):
    """PCA on the k features whose m principal components explain the most variance.

    Parameters
    ----------
    n_components : int or float, default=2
        m, the number of components; or, between 0 and 1, the fewest whose plain PCA has that share
        of the total variance, as in scikit-learn's PCA. `n_components_` has the number.
    n_features_to_select : int, float or None, default=None
        k, the number of features that all components share; or, between 0 and 1, that share of
        the features (rounded down); or None: ten for each component, and no more than half of all,
        unless `explained_share` decides.
    explained_share : float, optional
        With ``n_features_to_select=None``: take the smallest k that keeps this share of what
        plain PCA with as many components explains. That may be most of the features, and takes
        several fits.
    criterion : {"variance", "represent"}, default="variance"
        What the features are chosen for. "variance": that the components, made of and measured on
        them, explain the most variance; the papers' question. "represent": that the scores tell
        the most of the variance of *all* features, by linear regression. docs/which_question.md
        helps to choose; the attributes below say what differs.
    ridge : float, optional
        Of "represent": every chosen feature is taken to be measured with noise, of this share of
        its variance. By default 1e-5, which only makes copies worth nothing; 0.1 chooses features
        that hold up better on new samples when there are few.
    solver : str or method, default="auto"
        A name of the list below, or an object such as ``kspan.solvers.IPU(max_iter=50)``. "auto"
        gives the best value its budget allows, "exact" goes on until that is proved optimal. The
        others do what their paper says; docs/methods.md compares them.
    init : {"low-rank", "convex", "variance", "random"} or (n_features, n_components) array, \
            optional
        Where methods that take one start: "ipu", "soap", "srt" and others, and "tpower" (an array
        of one column); "convex" and arrays are added to the starts of "auto". docs/methods.md
        says what they are.
    include, exclude : names, indices or mask, optional
        Features that must, or must not, be chosen.
    groups : sequence or mapping, optional
        A label for each feature, in their order or by name; None for a feature of no group. With
        this rule or any below, k is "at most", and no k is needed with `budget` or `n_groups`.
        docs/panels.md shows all of them.
    group_rule : {None, "together"}, default=None
        "together": all features of a group are chosen, or none.
    n_groups : int, optional
        With "together": the most groups.
    max_per_group : int or mapping, optional
        The most features of each group, or of some by their label.
    costs : sequence or mapping, optional
        What each feature costs, in their order or by name.
    budget : float, optional
        What all chosen features may cost together.
    max_correlation : float, optional
        The most that two chosen features may be correlated, in absolute value.
    scale : bool, default=False
        Divide features by their standard deviation: work on correlations.
    covariance : {None, "precomputed"}, default=None
        With "precomputed", `fit` and `score` take a covariance matrix; `transform` takes data
        that is centred already.
    missing : {"raise", "mean", "pairwise"}, default="raise"
        What to do about NaN: refuse it, take the mean of its feature in its place, or compute each
        covariance from the samples that have both features. Then `transform` takes a missing value
        for the mean of the fit, so that it adds nothing.
    psd : {"mend", "raise"}, default="mend"
        What to do about a precomputed covariance (or one from pairs) that is not positive
        semidefinite, beyond rounding. "mend" warns by how much and takes it as it is: variances are
        its own, and upper bounds make up for what it lacks. See `kspan.as_covariance`.
    memory : path, `kspan.Memory` or joblib.Memory, optional
        Where to keep what was found out about the data before the search began: moments, A or XX',
        eigenpairs, never the data. The next fit of the same data, with other parameters, starts
        from there, with the same answer to the last digit. docs/choosing_k.md has a grid search.
    certify : bool or {"fast", "tight", "exact"}, default=False
        Prove how good the choice is: `certificate_` then has an upper bound on what any choice
        explains. "fast" uses closed forms, "tight" (the same as True) a convex relaxation,
        "exact" searches until the optimum is proved; with several components on more than 2500
        standardised features it can do no more than "tight", and `certificate_.advice` says so. A
        better choice found on the way is taken.
    n_jobs : int, optional
        Nodes of a search for a proof that are worked on at a time, in processes of their own, or by
        the workers of a `dask.distributed` client: None is one, -1 as many as there are cores.
        Answer and proof do not depend on it.
    solver_options : dict, optional
        More options of a solver that is named, the fields of its class, such as ``n_restarts`` of
        "auto". And of the proof: ``checkpoint``, ``checkpoint_every``, ``k_grid`` (see
        `kspan.certify`).
    time_limit : float, optional
        Seconds after which the best answer so far is returned. Without it the same
        `random_state` gives the same answer.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    verbose : int, default=0
        Write a line for every step to standard error.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal rows, sorted by explained variance. Only the columns of the chosen features
        are nonzero. The entry of largest size in each row is positive. With "represent" the
        combinations of the chosen features whose scores tell most: uncorrelated scores, each with
        the variance that it tells of all features, as those of PCA have. Rows are not orthonormal
        then, unless all features are chosen.
    decoder_ : array of shape (n_components, n_features)
        Only with "represent": orthonormal rows, the way back from scores to all features. The
        entry of largest size in each row is positive.
    selected_features_ : array of shape (k,)
        Names of the chosen features, or their indices if the data has no names.
    explained_variance_ : array of shape (n_components,)
        Sample variance (ddof=1) along each component; with "represent" what each score tells of the
        variance of all features.
    explained_variance_ratio_ : array of shape (n_components,)
        The same as a share of the variance of all features. It is variance of the chosen
        features alone; what it tells of the others is the next number.
    represented_variance_ratio_ : float
        Share of the variance of all features that the scores tell: what a linear regression of
        every feature on the m scores gives back.
    panel_variance_ratio_ : float
        The same with all chosen features in the place of the scores; never less.
    pca_variance_ratio_ : float or None
        The most that m scores can tell: those of PCA on all features. None where data is costly to
        read and no method has needed it.
    effective_features_ : float
        How many distinct signals the chosen features carry, from 1 (copies of each other) to their
        number (uncorrelated): their number squared over the sum of their squared correlations.
    objective_ : float
        ``explained_variance_.sum()``, in float64 whatever the data is. With "represent" the same
        with the noise of `ridge`, so a little less; `certificate_` is about this number.
    objective_history_ : array
        Objective after every step of the solver.
    n_iter_ : int
    certificate_ : Certificate
        ``lower``, ``upper``, ``gap``, ``status`` and the witness that proves them; only with
        `certify` or ``solver="exact"``.
    solver_, status_ : str
        The method that ran, and how it ended: early, if it was stopped or its proof was.
    mean_, scale_ : array of shape (n_features,)
        What `transform` subtracts and divides by; `scale_` is None without `scale`.
    n_components_, n_features_to_select_ : int
        m and k; with rules about features k is the most that they leave.
    n_samples_ : int
        Not set with a precomputed covariance.
    n_passes_ : int
        How often the whole data was read; with `memory` once to tell it from other data.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    {methods}

    See Also
    --------
    FeatureSparseSelector : keeps the chosen features themselves.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = FeatureSparsePCA(n_components=2, n_features_to_select=3, scale=True, random_state=0)
    >>> pca.fit_transform(wine).shape
    (178, 2)
    >>> list(pca.selected_features_)
    ['total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines']
    """
