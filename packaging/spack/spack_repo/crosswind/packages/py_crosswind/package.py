"""Crosswind for Spack, built from the checkout that this recipe lies in."""

from pathlib import Path

from spack.package import depends_on, license, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage

CHECKOUT = next(folder for folder in Path(__file__).resolve().parents if (folder / "Cargo.toml").is_file())


class PyCrosswind(PythonPackage):
    """What communication costs computation, measured, and the schedule that loses least."""

    git = f"file://{CHECKOUT}"

    license("Apache-2.0")

    version("main", branch="main", get_full_repo=False)

    variant("dask", default=True, description="Agents on a cluster that Dask runs")
    variant("mpi", default=False, description="Disturbances in real MPI programs")

    depends_on("c", type="build")
    depends_on("rust@1.85:", type="build")
    depends_on("py-maturin@1.9:1", type="build")
    depends_on("python@3.11:", type=("build", "run"))

    depends_on("py-altair@6:", type="run")
    depends_on("py-cloudpickle@3:", type="run")
    depends_on("py-jinja2@3.1:", type="run")
    depends_on("py-numpy@2:", type="run")
    depends_on("py-pandas@2.2:", type="run")
    depends_on("py-pyarrow@18:", type="run")
    depends_on("py-pydantic@2.10:", type="run")
    depends_on("py-rich@14:", type="run")
    depends_on("py-scipy@1.14:", type="run")
    depends_on("py-typer@0.15:", type="run")
    depends_on("py-vl-convert-python@1.8:", type="run")

    depends_on("py-distributed@2026:", when="+dask", type="run")
    depends_on("py-mpi4py@4:", when="+mpi", type="run")
    depends_on("mpi", when="+mpi", type="run")
