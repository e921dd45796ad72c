"""The operation of each kind of step: the module of that name in this package has it."""

from __future__ import annotations

import importlib

from nodescope.errors import RemedyError
from nodescope.remedy.actions.operation import Operation
from nodescope.remedy.plan import StepName


def find_operation(kind: StepName) -> Operation:
    """Return the operation of a kind of step."""
    try:
        module = importlib.import_module(f"nodescope.remedy.actions.{kind}")
    except ModuleNotFoundError as error:
        raise RemedyError(f"this Nodescope cannot take a step of kind {kind}") from error
    operation: Operation = module.OPERATION
    return operation
