"""Studies: a search for the parameters of an agent that score best.

Each trial is an evaluation. A *search space* has a distribution or a list of choices for each parameter. optuna (the
extra `study`) proposes the parameters; the study's own file is the truth about which trial got which, so that a study
that was cut off resumes its trials and asks for none twice.
"""

from .space import Categorical, Float, Int, SearchSpace
from .study import Study, StudyResult, Trial

__all__ = ["Categorical", "Float", "Int", "SearchSpace", "Study", "StudyResult", "Trial"]
