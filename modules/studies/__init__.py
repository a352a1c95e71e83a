"""Studies: a search for the parameters of an agent that score best.

Each trial is an evaluation. A *search space* has a distribution or a list of choices for each parameter. optuna (the
extra `study`) proposes the parameters. The study's own file records the parameters of each trial, so an interrupted
study resumes its trials with the same parameters.
"""

from .space import Categorical, Float, Int, SearchSpace
from .study import Study, StudyResult, Trial

__all__ = ["Categorical", "Float", "Int", "SearchSpace", "Study", "StudyResult", "Trial"]
