"""Values of `-fe_kernel`: the element kernels of each scheme, and the error where one has no effect."""

from __future__ import annotations

from ..errors import OptionError


def check_kernel(disc) -> None:
    """Raises OptionError where the scheme has no element kernel of the chosen name."""
    if disc.options.kernel not in disc.element_kernels:
        raise no_effect(disc.options, disc.title, disc.element_kernels)


def no_effect(options, where: str, kernels: tuple[str, ...], remedy: str = "") -> OptionError:
    """The error that says so. where: a scheme; kernels: what it takes; remedy: what else there is to do, if any."""
    taken = " or ".join(filter(None, (", ".join(kernels[:-1]), kernels[-1])))
    return OptionError(
        f"-{options.prefix}fe_kernel {options.kernel} has no effect on {where}, which takes {taken}; leave it out"
        + (remedy and f", or {remedy}")
    )
