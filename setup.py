"""Build the compiled loops where there is a C compiler; all else is in pyproject.toml."""

import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# What is not strict about NaN and infinity stays off. That operations need not trap, nor set
# errno, changes no number, and lets loops use vectors.
FLAGS = [
    "-std=c11",
    "-O3",
    "-g0",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-fno-math-errno",
]
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # has no stable ABI
STABLE = [] if FREE_THREADED else [("Py_LIMITED_API", "0x030B0000")]


class Build(build_ext):
    """Build with these flags, and say once whether it worked."""

    def build_extension(self, ext):
        if self.compiler.compiler_type == "unix":
            ext.extra_compile_args += FLAGS
        try:
            super().build_extension(ext)
        except BaseException:
            print("compiled module: no (it could not be built; NumPy does its work)")
            raise
        print("compiled module: yes")


LOOPS = Extension(
    "calibrant._rows._compiled",
    ["src/calibrant/_rows/_compiled.c"],
    depends=[f"src/calibrant/_rows/_compiled_{x}.h" for x in ("real", "sums")],
    define_macros=STABLE,
    py_limited_api=not FREE_THREADED,
    optional=True,  # without a compiler the package is installed all the same
)
WHEEL = {} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}}

setup(ext_modules=[LOOPS], cmdclass={"build_ext": Build}, options=WHEEL)
