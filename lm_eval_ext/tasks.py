"""A placeholder, in a checkout, for the package of task files that the entry points name.

An installed wheel has the folder ``lm_eval_ext/tasks`` instead, which Python prefers to this
file; in a checkout the task files lie in ``tasks/`` beside the package.
"""

from lm_eval_ext.task_folder import tasks_folder

__path__ = [tasks_folder()]
