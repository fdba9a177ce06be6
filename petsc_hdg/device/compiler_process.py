"""A process that compiles programs: `python compiler_process.py PLATFORM DEVICE`, two numbers of OpenCL's lists.

It writes a line as soon as it can compile, and one for each pickled (source, options) of its input that it has tried.
It ends when nothing comes for IDLE seconds.
"""

import pickle
import select
import sys
import warnings

sys.path.pop(0)  # this folder, where modules have the names of others

import pyopencl as cl  # noqa: E402

IDLE = 5.0


def main() -> None:
    warnings.simplefilter("ignore")
    device = cl.get_platforms()[int(sys.argv[1])].get_devices()[int(sys.argv[2])]
    context = cl.Context([device])
    while True:
        print(flush=True)
        if not select.select([sys.stdin], [], [], IDLE)[0]:
            return
        try:
            source, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            program = cl.Program(context, source)
            _ = program.int_ptr  # see build.py
            program.build(options, devices=[device], cache_dir=False)
        except cl.Error:
            pass  # the process that asked for it meets the same error


if __name__ == "__main__":
    main()
