"""Compile kernels.cu to kernels.ptx, which any NVIDIA driver since CUDA 12.0 translates for its own device.

Needs the wheel `nvidia-cuda-nvrtc-cu12`, and no GPU: python make.py.
"""

from __future__ import annotations

import ctypes
import hashlib
from pathlib import Path

ARCHITECTURE = "compute_80"
HERE = Path(__file__).parent


def compiled(source: str) -> str:
    """Return the PTX of a CUDA source."""
    import nvidia.cuda_nvrtc

    (library,) = Path(next(iter(nvidia.cuda_nvrtc.__path__)), "lib").glob("libnvrtc.so.*")
    nvrtc = ctypes.CDLL(str(library))
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={ARCHITECTURE}".encode()]

    def check(code: int) -> None:
        if code:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise SystemExit(log.value.decode())

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    check(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text))
    return text.value.decode()


if __name__ == "__main__":
    source = (HERE / "kernels.cu").read_text()
    digest = hashlib.sha256(source.encode()).hexdigest()
    (HERE / "kernels.ptx").write_text(f"// kernels.cu {digest}\n{compiled(source)}")
