"""The one place where numba is configured: every kernel is decorated by `kernel` or `reduction_kernel`.

Called by each module of kernels/. It must not hold a kernel itself, nor any state but the cache folder.
"""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
from numba.core import sigutils, typeinfer
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

COMPLETE = "complete"  # a file in the cache folder, once every kernel is there
_LOCK = ".compiling"  # a file there, held by the process that compiles


def _cache_dir() -> str | None:
    """Return a writable cache folder keyed by every kernel source, numba and BOUNDSCHECK, or None.

    A complete one that cannot be written, as in an image whose root is read-only, is copied: numba reads none.
    numba notices edits to the file of the kernel only, not to the helpers it calls, and does not know
    whether cached code was compiled with bounds checks: both are part of the folder's name instead.
    """
    here = pathlib.Path(__file__).parent
    key = hashlib.sha256(f"{numba.__version__}|{vars(numba.config)['BOUNDSCHECK']}".encode())
    for path in sorted(here.glob("*.py")):
        key.update(path.read_bytes())
    base = os.environ.get("STILLWATCH_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stillwatch"
    )
    path = pathlib.Path(base) / key.hexdigest()[:16]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(path) if os.access(path, os.W_OK) else _copy_of(path)


def _copy_of(path: pathlib.Path) -> str | None:
    """Return a copy of a complete cache (8 MB) that ends with this process; None where there is nothing to copy."""
    if not (path / COMPLETE).exists():
        return None
    try:
        copy = tempfile.mkdtemp(prefix="stillwatch-kernels-")
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        shutil.copytree(path, copy, dirs_exist_ok=True)
    except OSError:  # no room, or not even a temporary folder: kernels are compiled at each start
        return None
    return copy


CACHE_DIR = _cache_dir()
if CACHE_DIR:
    numba.config.CACHE_DIR = CACHE_DIR  # type: ignore[attr-defined]


class _OneCompiler:
    """Lets one process at a time compile for a folder; entered again within, since compilers load what a kernel calls.

    numba numbers what a process compiles, and the number is part of each symbol's name. Two processes that fill a cache
    at once leave callers of one beside callees of the other: names that do not meet, so that a caller keeps its own
    copy of what it calls, with other bits than in a process that compiled both.
    Entered with numba's lock of compilers held. A disk that knows no locks is written all the same.
    """

    def __init__(self) -> None:
        self._depth = 0

    @contextlib.contextmanager
    def __call__(self, folder: str) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            if not self._depth:
                with contextlib.suppress(OSError):
                    lock = held.enter_context(open(os.path.join(folder, _LOCK), "ab"))
                    fcntl.flock(lock, fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1


_one_compiler = _OneCompiler()


class _Cache(FunctionCache):
    """Machine code on the disk, loaded without numba's tables of what it can compile.

    To fill them takes two thirds of the time in which a process loads its first kernels, 9 MB of a run, and the import
    of scipy where that is installed. The compiler fills them by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Called by `Kernel.load`; numba's own calls `target_context.refresh()`, of which code needs the runtime."""
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)


class Kernel(CPUDispatcher):
    """A compiled function whose signatures are all given, loaded from the cache at its first call and not before.

    What the cache lacks is compiled when the kernel is defined: no call waits for the compiler in the midst of frames.
    A process calls few of the kernels that it imports, and loading all of them takes longer than numba's own import. Of
    a kernel's signatures it loads those that it calls: frames are 8 bits deep, the code for others takes 6 MB.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Any], *, cache: bool, **options: Any):
        super().__init__(py_func=function, targetoptions={"nopython": True, "boundscheck": None, **options})
        self._pending = tuple(signatures)
        if cache:
            self._cache = _Cache(function)
        # Off from here on but while it compiles: a call reads this, takes the types of its arguments and reads it once
        # more, and is refused where another thread's first call has changed it meanwhile.
        self._can_compile = False
        if not (cache and self._is_cached()):
            self.load()

    def _is_cached(self) -> bool:
        held, codegen = self._cache._cache_file._load_index(), self.targetctx.codegen()
        return all(self._cache._index_key(signature, codegen) in held for signature in self._pending)

    def load(self) -> None:
        """Load every signature, or compile it; a call with other types is refused."""
        self._load(self._pending)

    def _load(self, wanted: Sequence[Any]) -> None:
        """Load signatures that are pending.

        What it calls is loaded before it. Each caller's object code has a copy of what it calls, optimised in its
        place, and the linker keeps the copy that comes first: bits must not depend on which kernel was called first.
        """
        with global_compiler_lock, typeinfer.register_dispatcher(self):
            for signature in [signature for signature in self._pending if signature in wanted]:
                self._pending = tuple(other for other in self._pending if other is not signature)
                for name in self.py_func.__code__.co_names:
                    called = self.py_func.__globals__.get(name)
                    if isinstance(called, Kernel):
                        called._load_as_called_by(signature)
                held = self._cache.load_overload(signature, self.targetctx)
                if held is None:
                    self._compile(signature)
                else:
                    self._cache_hits[signature] += 1
                    self.targetctx.insert_user_function(held.entry_point, held.fndesc, [held.library])
                    self.add_overload(held)

    def _load_as_called_by(self, signature: Any) -> None:
        """Load what a caller of this signature needs: a kernel for images of some depth calls those for the same."""
        first = _arguments_of(signature)[:1]
        self._load([own for own in self._pending if _arguments_of(own)[:1] == first] or self._pending)

    def _compile(self, signature: Any) -> None:
        """Compile one signature; or load it, where another process compiled it while this one waited for its turn."""
        folder = self._cache.cache_path
        with _one_compiler(folder) if folder else contextlib.nullcontext():
            self._can_compile = True
            try:
                self.compile(signature)  # asks the cache once more
            finally:
                self._can_compile = False

    def _search_new_conversions(self, *args: Any, **kws: Any) -> bool:
        """Called by numba before it refuses types that it has no code for: at the first call it has none at all."""
        given = [self.typeof_pyval(arg) for arg in args]
        fits = [signature for signature in self._pending if self._takes(given, signature)]
        self._load(fits or self._pending)
        return bool(super()._search_new_conversions(*args, **kws))

    def _takes(self, given: Sequence[Any], signature: Any) -> bool:
        """Whether arguments of these types can be given to a signature."""
        wanted = _arguments_of(signature)
        return len(given) == len(wanted) and all(
            self.typingctx.can_convert(one, other) is not None for one, other in zip(given, wanted, strict=True)
        )

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Called by numba where another kernel that calls this one is compiled."""
        self.load()
        return super().get_call_template(args, kws)


def _arguments_of(signature: Any) -> tuple[Any, ...]:
    """Return the types that a signature takes, however it is written."""
    return tuple(sigutils.normalize_signature(signature)[0])


def kernel(signatures: Any, *, cache: bool = CACHE_DIR is not None, **options: Any) -> Callable[..., Any]:
    """Return the decorator of a kernel with these signatures, one or a list; with the JIT off it changes nothing.

    Kernels are compiled without numba's runtime: what would allocate is refused, and no reference is counted. An atomic
    count for each slice that one kernel gives another took a quarter of a mixture's learning, 6 % of a file's time.
    """
    options = {"nogil": True, "error_model": "numpy", "_nrt": False, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        given = signatures if isinstance(signatures, list) else [signatures]
        return Kernel(function, given, cache=cache, **options)

    return decorate


# The five flags keep NaN and inf tests true, unlike fastmath=True. Only for dot, distance and histogram sums
# over data already known finite; never for running moments, compensated sums or validity checks.
reduction_kernel = functools.partial(kernel, fastmath={"nsz", "arcp", "contract", "afn", "reassoc"})
